/// The proof of a schedule for eyes.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// validate(), but the message of a refusal ends in the grid with the culprit marked. Throws
/// Error{Schedule}.
std::vector<ActionPlace> validate_for_eyes(const Schedule& schedule);

}  // namespace pipewright
