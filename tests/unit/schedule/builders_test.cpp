// SPDX-License-Identifier: Apache-2.0
// The orders of passes that schemes share, in the words of action_name.
#include "core/schedule/builders.h"

#include <gtest/gtest.h>

#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

std::string order_of(const Schedule& schedule, int worker) {
  std::string text;
  for (const Action& action : schedule.workers[static_cast<std::size_t>(worker)]) {
    const std::string name = action_name(action, schedule.shape.microbatches);
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

TEST(Builders, OneAtATimeHasOneMicroBatchInFlight) {
  const Schedule schedule = pipeline_schedule({.stages = 2, .microbatches = 2, .minibatches = 2},
                                              {.one_at_a_time = true});
  EXPECT_EQ(order_of(schedule, 0), "0F0.0 0B0.0 0F0.1 0B0.1 0U0 0F1.0 0B1.0 0F1.1 0B1.1 0U1");
}

TEST(Builders, FillDrainWalksBackFromTheLastMicroBatch) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 3}, {.fill_drain = true});
  EXPECT_EQ(order_of(schedule, 1), "1F0.0 1F0.1 1F0.2 1B0.2 1B0.1 1B0.0 1U0");
}

TEST(Builders, WithoutFlushThePipeIsFilledOnceAndDrainedOnce) {
  const Schedule schedule = pipeline_schedule({.stages = 3, .minibatches = 4}, {.flush = false});
  EXPECT_EQ(order_of(schedule, 0), "0F0 0F1 0F2 0B0 0U0 0F3 0B1 0U1 0B2 0U2 0B3 0U3");
  EXPECT_EQ(order_of(schedule, 1), "1F0 1F1 1B0 1U0 1F2 1B1 1U1 1F3 1B2 1U2 1B3 1U3");
  EXPECT_EQ(order_of(schedule, 2), "2F0 2B0 2U0 2F1 2B1 2U1 2F2 2B2 2U2 2F3 2B3 2U3");
}

TEST(Builders, WithFlushEachMiniBatchFillsAndDrains) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 3, .minibatches = 2}, {.flush = true});
  EXPECT_EQ(order_of(schedule, 0),
            "0F0.0 0F0.1 0B0.0 0F0.2 0B0.1 0B0.2 0U0 0F1.0 0F1.1 0B1.0 0F1.2 0B1.1 0B1.2 0U1");
}

TEST(Builders, AShortPipeIsFilledWithWhatThereIs) {
  EXPECT_EQ(order_of(pipeline_schedule({.stages = 5, .minibatches = 2}, {.flush = false}), 0),
            "0F0 0F1 0B0 0U0 0B1 0U1");
}

TEST(Builders, ReplicasReduceBeforeTheyUpdate) {
  const Schedule schedule = pipeline_schedule({.stages = 2, .replicas = 2}, {});
  EXPECT_EQ(order_of(schedule, 3), "1F0 1B0 1R0 1U0");
  EXPECT_EQ(schedule.workers[3][0].replica, 1);
}

TEST(Builders, EvaluationHasForwardsOnly) {
  const Schedule schedule = evaluation_schedule({.stages = 2, .microbatches = 2});
  EXPECT_EQ(order_of(schedule, 1), "1F0.0 1F0.1");
  EXPECT_FALSE(schedule.shape.training);
}

TEST(Builders, EveryStageLearnsFromTheLastLoss) {
  EXPECT_EQ(empty_schedule({.stages = 3}).learns_from,
            (std::vector<std::vector<int>>{{2}, {2}, {2}}));
}

TEST(Builders, RulesAreAskedForEachPassInTurn) {
  std::vector<int> updates;
  const WeightRule forward = [&](const PassPlace& pass) {
    if (pass.stage == 0) updates.push_back(pass.updates_before);
    return Weights::latest(pass.depth());
  };
  const Schedule schedule =
      pipeline_schedule({.stages = 3, .minibatches = 5}, {.flush = false}, forward, forward_weights,
                        [](int stage) { return stage + 0.5; });
  EXPECT_EQ(updates, (std::vector<int>{0, 0, 0, 1, 2}));
  EXPECT_EQ(schedule.workers[1][0].weights, Weights::latest(1));
  EXPECT_EQ(schedule.workers[1][2].weights, Weights::of_forward());
  EXPECT_EQ(schedule.workers[1][3].scale, 1.5);
}

TEST(PassPlace, DistanceIsTheDepthOnceThePipeIsFull) {
  for (int minibatch = 0; minibatch < 8; ++minibatch) {
    const PassPlace place{.stage = 1,
                          .stages = 4,
                          .minibatch = minibatch,
                          .updates_before = std::max(0, minibatch - 2)};
    EXPECT_EQ(place.distance(true), 2);
    EXPECT_EQ(place.distance(false), std::min(2, minibatch));
  }
}

TEST(SharedWorkers, TakeBackwardsBeforeForwardsAndWhatIsReadyBeforeWhatWaits) {
  const Schedule schedule = pipeline_schedule(
      {.stages = 4, .microbatches = 2, .placement = {0, 1, 0, 1}}, {.flush = true});
  ASSERT_EQ(schedule.workers.size(), 2u);
  EXPECT_EQ(order_of(schedule, 0), "0F0.0 0F0.1 2F0.0 2F0.1 2B0.0 0B0.0 2B0.1 2U0 0B0.1 0U0");
  EXPECT_EQ(order_of(schedule, 1), "1F0.0 1F0.1 3F0.0 3B0.0 1B0.0 3F0.1 3B0.1 3U0 1B0.1 1U0");
}

TEST(SharedWorkers, OfEachReplicaAreItsOwn) {
  const PipelineShape shape{.stages = 3, .replicas = 2, .placement = {0, 1, 0}};
  EXPECT_EQ(shape.workers(), 4);
  EXPECT_EQ(shape.worker_of(2, 0), 0);
  EXPECT_EQ(shape.worker_of(1, 1), 3);
}

TEST(Dependencies, InputsAreDerivedNotWritten) {
  const Schedule schedule = pipeline_schedule({.stages = 2}, {});  // F B U on both
  const PassIndex index(schedule);
  const Action &f0 = schedule.workers[0][0], &b0 = schedule.workers[0][1];
  const Action &f1 = schedule.workers[1][0], &b1 = schedule.workers[1][1];
  EXPECT_EQ(index.input_of(f0), kNowhere);
  EXPECT_EQ(index.input_of(f1), (ActionPlace{0, 0}));
  EXPECT_EQ(index.input_of(b1), (ActionPlace{1, 0}));
  EXPECT_EQ(index.input_of(b0), (ActionPlace{1, 1}));
  EXPECT_EQ(index.consumer_of(b1), (ActionPlace{0, 1}));
  EXPECT_EQ(index.consumer_of(b0), kNowhere);
  EXPECT_EQ(index.input_of(schedule.workers[0][2]), kNowhere) << "an update waits for nothing";
}

TEST(Dependencies, AFusedPairIsAForwardBesideABackwardOfAnotherPass) {
  const Action forward{.kind = ActionKind::Forward, .microbatch = 1, .with_next = true};
  Action backward{.kind = ActionKind::Backward, .microbatch = 1};
  EXPECT_FALSE(is_fused_pair({forward, backward}, 0)) << "its own";
  backward.microbatch = 0;
  EXPECT_TRUE(is_fused_pair({forward, backward}, 0));
  EXPECT_FALSE(is_fused_pair({forward, forward}, 0));
  EXPECT_FALSE(is_fused_pair({forward}, 0)) << "nothing is next";
  EXPECT_FALSE(is_fused_pair({backward, backward}, 0)) << "it says nothing of the next";
}

TEST(ActionName, SaysStageKindMiniBatchAndWhatElseMatters) {
  EXPECT_EQ(action_name({.stage = 2, .minibatch = 17}), "2F17");
  EXPECT_EQ(action_name({.kind = ActionKind::Backward, .minibatch = 3, .microbatch = 1}, 4),
            "0B3.1");
  EXPECT_EQ(action_name({.kind = ActionKind::Update, .stage = 1, .minibatch = 4}, 4), "1U4");
  EXPECT_EQ(action_name({.kind = ActionKind::Head, .stage = 2}), "2H0");
  EXPECT_EQ(action_name({.kind = ActionKind::BackwardInput, .stage = 1, .minibatch = 3, .loss = 2}),
            "1b3←2");
  EXPECT_EQ(action_name({.kind = ActionKind::Reduce, .minibatch = 5}), "0R5");
}

}  // namespace
}  // namespace pipewright
