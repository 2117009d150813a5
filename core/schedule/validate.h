// SPDX-License-Identifier: Apache-2.0
/// Proves a schedule before anything runs.
#pragma once

#include <vector>

#include "core/schedule/invalid_schedule.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Checks completeness (each pass once, each gradient consumed by one later update), order (inputs
/// are produced before use), absence of deadlock under the link capacities, and versions. Returns
/// one order of all actions in which every action's inputs are ready: what `serial` runs. Throws
/// InvalidSchedule, or Error{Schedule} where the numbers in it are out of their ranges.
std::vector<ActionPlace> validate(const Schedule& schedule);

}  // namespace pipewright
