// SPDX-License-Identifier: Apache-2.0
/// The error for a schedule that cannot be right, with the action at which that shows.
#pragma once

#include <string>

#include "core/base/error.h"
#include "core/schedule/dependencies.h"

namespace pipewright {

/// Thrown for a schedule that cannot be right. Its culprit is the action at which that shows.
class InvalidSchedule final : public Error {
 public:
  /// `culprit`: kNowhere where no single action is to blame.
  InvalidSchedule(const std::string& message, ActionPlace culprit);
  ActionPlace culprit() const { return culprit_; }

 private:
  ActionPlace culprit_;
};

/// The meaning of an action's name: "0B2.1 is the backward of stage 0, mini-batch 2,
/// micro-batch 1".
std::string spelled_out(const Action& action, const PipelineShape& shape);

/// Throws InvalidSchedule with the culprit's name before the message: "0B3 happens twice".
[[noreturn]] void refuse(const Schedule& schedule, ActionPlace culprit, const std::string& message);

/// Throws Error{Schedule} for a shape that no action is to blame for.
[[noreturn]] void refuse_shape(const std::string& message);

}  // namespace pipewright
