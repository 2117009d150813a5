/// Proves a schedule before anything runs.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Checks completeness (each pass once, each gradient consumed by one later update), order (inputs
/// are produced before use), absence of deadlock under the link capacities, and versions. Returns
/// one order of all actions in which every action's inputs are ready: what `serial` runs. Throws
/// Error{Schedule} whose message has the grid with the culprit marked.
std::vector<ActionPlace> validate(const Schedule& schedule);

}  // namespace pipewright
