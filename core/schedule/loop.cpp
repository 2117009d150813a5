// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/loop.h"

#include "core/base/as_size.h"

namespace pipewright {

Action later(Action action, const Step& step, int stages, int rounds) {
  action.minibatch += rounds * step.minibatches;
  if (action.weights.source == Weights::Source::Version)
    action.weights.version +=
        rounds * step.updates[as_size(action.replica * stages + action.stage)];
  return action;
}

Schedule unrolled(const Schedule& schedule, const Loop& loop, int rounds) {
  Schedule whole = schedule;
  whole.shape.minibatches += (rounds - 1) * loop.step.minibatches;
  for (std::size_t w = 0; w < whole.workers.size(); ++w) {
    const auto& actions = schedule.workers[w];
    const auto [begin, end] = loop.bodies[w];
    auto& all = whole.workers[w];
    all.assign(actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(end));
    for (int round = 1; round < rounds; ++round)
      for (std::size_t i = begin; i < end; ++i)
        all.push_back(later(actions[i], loop.step, schedule.shape.stages, round));
    for (std::size_t i = end; i < actions.size(); ++i)
      all.push_back(later(actions[i], loop.step, schedule.shape.stages, rounds - 1));
  }
  return whole;
}

}  // namespace pipewright
