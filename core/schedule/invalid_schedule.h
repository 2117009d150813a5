/// The refusal of a schedule, with the action at which it shows.
#pragma once

#include <string>

#include "core/base/error.h"
#include "core/schedule/dependencies.h"

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

/// Throws InvalidSchedule: "0B3 …", the culprit's name and then the message.
[[noreturn]] void refuse(const Schedule& schedule, ActionPlace culprit, const std::string& message);

}  // namespace pipewright
