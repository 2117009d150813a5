// SPDX-License-Identifier: Apache-2.0
/// Options of `pipeline` rewrite the schedule that a scheme has made, before it is proved.
#pragma once

#include <functional>
#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

struct ScheduleRewrite {
  const char* option = "";  ///< "pipeline.recompute"
  std::function<Schedule(Schedule)> apply;
  /// A remark for `check` if the option changes nothing in such a schedule, which it has rewritten;
  /// else "".
  std::function<std::string(const Schedule&)> remark;
  /// Why it cannot be had together with pipeline.slices, and what to choose; "": it can.
  std::string not_in_slices = {};
};

}  // namespace pipewright
