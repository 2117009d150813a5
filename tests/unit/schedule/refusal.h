// SPDX-License-Identifier: Apache-2.0
/// What a proof says of a schedule that it refuses.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The message with the grid below it, or "accepted".
inline std::string refusal(const Schedule& schedule) {
  try {
    prove_for_eyes(Schedule(schedule));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    return error.what();
  }
  return "accepted";
}

/// The message's first line after a change of the first worker's actions, or "accepted".
inline std::string refusal_after(Schedule schedule,
                                 const std::function<void(std::vector<Action>&)>& change) {
  change(schedule.workers[0]);
  const std::string text = refusal(schedule);
  return text.substr(0, text.find('\n'));
}

}  // namespace pipewright
