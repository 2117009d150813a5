/// When each action starts, in whole slots: the clock of every drawing. Times with real costs come
/// from simulate, not from here.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Start of an action that waits for ever: for an input nobody makes, or behind such an action.
inline constexpr int kNeverStarts = -1;

/// Start of every action if each takes the slots_of() its kind, transfers take none, links hold any
/// number of messages, and every worker starts its next action as soon as its input is there. A
/// Reduce starts when all replicas have reached it.
struct SlotTimes {
  std::vector<std::vector<int>> start;  ///< parallel to Schedule::workers; or kNeverStarts
  int makespan = 0;                     ///< end of the last action that starts
};

/// For any schedule, complete or not; actions whose numbers lie outside the shape never start, nor
/// backwards of a loss before their stage.
SlotTimes slot_times(const Schedule& schedule);

}  // namespace pipewright
