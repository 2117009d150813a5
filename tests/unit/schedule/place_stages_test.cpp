// SPDX-License-Identifier: Apache-2.0
// Stages that share a worker, against a second reading of the rule: in rounds, each worker takes
// the most urgent of its stages' next actions whose input is there.
#include <gtest/gtest.h>

#include <random>

#include "core/base/as_size.h"
#include "core/schedule/builders.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/prove.h"

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
    EXPECT_NO_THROW(prove(placed));
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
  EXPECT_THROW(prove(stuck), Error);
}

TEST(PlaceStages, NamesWorkersByReplicaOnlyWhereReplicasAreNotPlacedAlike) {
  PipelineShape shape{.stages = 2, .replicas = 2};
  shape.place({{0, 1}, {2, 3}});
  EXPECT_EQ(shape.placement, (std::vector{0, 1}));
  EXPECT_TRUE(shape.replica_placement.empty());
  shape.place({{0, 1}, {1, 0}});
  EXPECT_TRUE(shape.placement.empty());
  EXPECT_EQ(shape.workers(), 2);
  EXPECT_EQ(shape.workers_of(0), (std::vector{0, 1}));
  EXPECT_EQ(shape.workers_of(1), (std::vector{1, 0}));
  EXPECT_EQ(shape.evaluating(),
            (PipelineShape{.stages = 2, .placement = {0, 1}, .training = false}));
}

/// Every stage keeps its own order, and reductions come in the same order on both workers.
TEST(PlaceStages, GivesStagesOfReplicasThatShareAWorkerTheirTurns) {
  const PipelineShape shape{.stages = 4,
                            .replicas = 2,
                            .microbatches = 4,
                            .minibatches = 2,
                            .replica_placement = opposite_placement(4, 2)};
  PipelineShape apart = shape;
  apart.replica_placement.clear();
  const Schedule schedule = pipeline_schedule(shape, {.fill_drain = true});
  const Schedule plain = pipeline_schedule(apart, {.fill_drain = true});
  EXPECT_NO_THROW(prove(schedule));
  ASSERT_EQ(schedule.workers.size(), 4U);
  for (int replica = 0; replica < 2; ++replica)
    for (int stage = 0; stage < 4; ++stage) {
      std::vector<Action> own;
      for (const Action& each : schedule.workers[as_size(shape.worker_of(stage, replica))])
        if (each.stage == stage && each.replica == replica) own.push_back(each);
      EXPECT_EQ(own, plain.workers[as_size(apart.worker_of(stage, replica))]);
    }
}

/// The order of two replicas on two workers is that of each of two groups of them.
TEST(PlaceStages, GivesEveryGroupOfReplicasTheSameOrder) {
  const PipelineShape shape{
      .stages = 2, .replicas = 4, .replica_placement = opposite_placement(2, 4)};
  std::vector<std::vector<PassStep>> orders;
  for (const int worker : {0, 1}) {
    auto& steps = orders.emplace_back();
    for (const ActionKind kind : {ActionKind::Forward, ActionKind::Backward})
      for (const int stage : {0, 1}) {
        const int at = kind == ActionKind::Forward ? stage : 1 - stage;
        steps.push_back({kind, at, 0, at == worker ? 0 : 1});
      }
  }
  const Schedule schedule = schedule_of_workers(shape, orders);
  EXPECT_NO_THROW(prove(schedule));
  ASSERT_EQ(schedule.workers.size(), 4U);
  for (const std::size_t worker : {0, 1}) {
    std::vector<Action> later = schedule.workers[worker];
    for (Action& action : later) action.replica += 2;
    EXPECT_EQ(schedule.workers[worker + 2], later);
  }
}

}  // namespace
}  // namespace pipewright
