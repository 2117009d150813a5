// SPDX-License-Identifier: Apache-2.0
/// The proof of a schedule, with a drawing where it fails.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// As validate(), but the message of a refusal ends with the grid, in which the culprit is marked.
/// Throws Error{Schedule}.
std::vector<ActionPlace> validate_for_eyes(const Schedule& schedule);

}  // namespace pipewright
