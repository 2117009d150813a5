// SPDX-License-Identifier: Apache-2.0
// Stages that share a worker, against a second reading of the rule: in rounds, each worker takes
// the most urgent of its stages' next actions whose input is there.
#include <gtest/gtest.h>

#include <random>

#include "core/base/as_size.h"
#include "core/schedule/builders.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/validate.h"

namespace pipewright {
namespace {

/// Whether the input of a stage's next action is there, if `taken` actions of each stage are done.
bool is_ready(const Schedule& by_stage, const std::vector<int>& taken, int stage) {
  const PassIndex index(by_stage);
  const Action& next = by_stage.workers[as_size(stage)][as_size(taken[as_size(stage)])];
  const auto [source, position] = index.input_of(next);
  return source < 0 || taken[as_size(source)] > position;
}

/// The orders of the workers, found by asking everything anew for each action.
std::vector<std::vector<Action>> in_turns(const Schedule& by_stage, const PipelineShape& shape) {
  std::vector<std::vector<Action>> workers(as_size(shape.workers()));
  std::vector<int> taken(by_stage.workers.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int worker = 0; worker < shape.workers(); ++worker) {
      int best = -1, least = 0;
      for (int stage = 0; stage < static_cast<int>(taken.size()); ++stage) {
        const auto& order = by_stage.workers[as_size(stage)];
        if (shape.worker_of(stage % shape.stages, stage / shape.stages) != worker ||
            as_size(taken[as_size(stage)]) == order.size() || !is_ready(by_stage, taken, stage))
          continue;
        const int urgency = facts_of(order[as_size(taken[as_size(stage)])].kind).urgency;
        if (best < 0 || urgency < least) best = stage, least = urgency;
      }
      if (best < 0) continue;
      workers[as_size(worker)].push_back(
          by_stage.workers[as_size(best)][as_size(taken[as_size(best)]++)]);
      moved = true;
    }
  }
  return workers;
}

TEST(SharedWorkers, TakeTurnsAsASecondReadingSays) {
  std::mt19937 random(1);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % as_size(most)); };
  for (int trial = 0; trial < 40; ++trial) {
    PipelineShape shape{.stages = up_to(5), .replicas = up_to(2), .microbatches = up_to(4)};
    shape.minibatches = up_to(2);
    const PassOrder order{.flush = trial % 3 != 0, .fill_drain = trial % 3 == 1};
    const Schedule by_stage = pipeline_schedule(shape, order);
    const int workers = up_to(shape.stages);
    for (int stage = 0; stage < shape.stages; ++stage)
      shape.placement.push_back(stage < workers ? workers - 1 - stage
                                                : static_cast<int>(random() % as_size(workers)));
    const Schedule placed = pipeline_schedule(shape, order);
    EXPECT_NO_THROW(validate(placed));
    ASSERT_EQ(placed.workers, in_turns(by_stage, shape)) << "trial " << trial;
  }
}

TEST(SharedWorkers, KeepActionsThatCanNeverStart) {
  PipelineShape shape{.stages = 2, .placement = {0, 0}};
  std::vector<std::vector<Action>> orders = pipeline_schedule({.stages = 2}, {}).workers;
  std::swap(orders[0][0], orders[0][1]);  // the first stage's backward before its forward
  const Schedule stuck = schedule_of_stages(shape, orders);
  ASSERT_EQ(stuck.workers.size(), 1u);
  EXPECT_EQ(stuck.workers[0].size(), orders[0].size() + orders[1].size());
  EXPECT_THROW(validate(stuck), Error);
}

}  // namespace
}  // namespace pipewright
