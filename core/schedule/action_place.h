// SPDX-License-Identifier: Apache-2.0
/// Where an action stands in a schedule.
#pragma once

#include <utility>

#include "core/base/as_size.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// (worker, index of the action on it); {−1, −1} = none.
using ActionPlace = std::pair<int, int>;
inline constexpr ActionPlace kNowhere{-1, -1};

inline const Action& action_at(const Schedule& schedule, ActionPlace place) {
  return schedule.workers[as_size(place.first)][as_size(place.second)];
}

/// Calls look(place, action) for every action, worker after worker.
template <class Look>
void for_each_action(const Schedule& schedule, const Look& look) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w) {
    const auto& actions = schedule.workers[as_size(w)];
    for (int i = 0; i < static_cast<int>(actions.size()); ++i)
      look(ActionPlace{w, i}, actions[as_size(i)]);
  }
}

/// Whether an action of the schedule satisfies `is`.
template <class Is>
bool any_action(const Schedule& schedule, const Is& is) {
  for (const auto& actions : schedule.workers)
    for (const Action& action : actions)
      if (is(action)) return true;
  return false;
}

}  // namespace pipewright
