// SPDX-License-Identifier: Apache-2.0
/// When each action starts, in whole slots: the clock of every drawing. Times with real costs come
/// from simulate, not from here.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Start of an action that waits for ever: for an input that no action makes, or behind such an
/// action.
inline constexpr int kNeverStarts = -1;

/// The start of every action, in slots, if an action takes the slots_of() its kind, transfers take
/// none, links hold any number of messages, and every worker starts its next action as soon as its
/// input is there. A Reduce starts when all replicas have reached it. The halves of a fused pair
/// take slots one after the other, from when both have their inputs; what they send is there when
/// both have ended.
struct SlotTimes {
  std::vector<std::vector<int>> start;  ///< parallel to Schedule::workers; or kNeverStarts
  int makespan = 0;                     ///< end of the last action that starts
};

/// Times any schedule, complete or not. An action with numbers outside the shape never starts, and
/// neither does a backward of a loss before its stage.
SlotTimes slot_times(const Schedule& schedule);

}  // namespace pipewright
