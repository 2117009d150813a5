/// Proves a schedule before anything runs.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Why a schedule cannot be right, and the action at which that shows.
class InvalidSchedule final : public Error {
 public:
  /// `culprit`: kNowhere where no single action is to blame.
  InvalidSchedule(const std::string& message, ActionPlace culprit);
  ActionPlace culprit() const { return culprit_; }

 private:
  ActionPlace culprit_;
};

/// Checks completeness (each pass once, each gradient consumed by one later update), order (inputs
/// are produced before use), absence of deadlock under the link capacities, and versions. Returns
/// one order of all actions in which every action's inputs are ready: what `serial` runs. Throws
/// InvalidSchedule, or Error{Schedule} where the numbers in it are out of their ranges.
std::vector<ActionPlace> validate(const Schedule& schedule);

}  // namespace pipewright
