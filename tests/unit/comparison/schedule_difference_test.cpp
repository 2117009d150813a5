// SPDX-License-Identifier: Apache-2.0
#include "core/comparison/schedule_difference.h"

#include <gtest/gtest.h>

#include "core/schedule/schedule.h"

namespace pipewright {
namespace {

/// One stage that trains so many mini-batches: F0 B0 U0 F1 B1 U1 …
Schedule one_stage(int minibatches) {
  Schedule schedule{.shape = {.minibatches = minibatches}, .learns_from = {{0}}};
  std::vector<Action>& actions = schedule.workers.emplace_back();
  for (int m = 0; m < minibatches; ++m) {
    actions.push_back({.kind = ActionKind::Forward, .minibatch = m, .weights = Weights::latest()});
    actions.push_back(
        {.kind = ActionKind::Backward, .minibatch = m, .weights = Weights::of_forward()});
    actions.push_back({.kind = ActionKind::Update, .minibatch = m});
  }
  return schedule;
}

TEST(ScheduleDifference, EqualSchedulesHaveNone) {
  const auto workers = schedule_differences(prove(one_stage(2)), prove(one_stage(2)));
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].same, 6u);
  EXPECT_FALSE(workers[0].first);
  EXPECT_EQ(schedule_difference_text(workers),
            "worker 0    the same 6 actions\n"
            "in all      6 of 6 places the same, 0 with other weights, 0 with another action\n");
}

TEST(ScheduleDifference, NamesTheFirstActionThatDiffersAndCountsTheRest) {
  Schedule other = one_stage(2);
  std::swap(other.workers[0][2], other.workers[0][3]);  // F1 before U0, so that it reads version 0
  const auto workers = schedule_differences(prove(one_stage(2)), prove(other));
  EXPECT_EQ(workers[0].same, 3u) << "F0, B0, U1";
  EXPECT_EQ(workers[0].other_weights, 1u) << "B1 goes with the weights of its forward";
  EXPECT_EQ(workers[0].first, 2u);
  EXPECT_EQ(workers[0].first_a, "U0");
  EXPECT_EQ(workers[0].first_b, "F1 with weights 0");
}

TEST(ScheduleDifference, TheSameActionWithOtherWeightsIsADifferenceOfWeights) {
  Schedule other = one_stage(2);
  other.workers[0][3].weights = Weights::of_version(1, 1);
  const auto workers = schedule_differences(prove(one_stage(2)), prove(other));
  EXPECT_EQ(workers[0].first, 3u);
  EXPECT_EQ(workers[0].first_a, "F1 with weights 1");
  EXPECT_EQ(workers[0].first_b, "F1 with weights 1→2(+1)");
  EXPECT_EQ(workers[0].other_weights, 2u) << "and its backward";
}

TEST(ScheduleDifference, NamesDoNotHideThatTheSameWeightsAreNamedOtherwise) {
  Schedule other = one_stage(2);
  other.workers[0][3].weights = Weights::of_version(1);  // which is the latest
  EXPECT_FALSE(schedule_differences(prove(one_stage(2)), prove(other))[0].first);
}

/// That of two stages on a worker each, which learn from the last one's loss.
Schedule two_stages(int minibatches) {
  Schedule schedule = one_stage(minibatches);
  schedule.shape.stages = 2;
  schedule.shape.placement = {0, 1};
  schedule.learns_from = {{1}, {1}};
  for (Action& action : schedule.workers[0])
    if (action.kind == ActionKind::Backward) action.loss = 1;
  schedule.workers.push_back(schedule.workers[0]);
  for (Action& action : schedule.workers[1]) action.stage = 1;
  return schedule;
}

TEST(ScheduleDifference, TheModelsOwnLossIsTheSameInAnyNumberOfStages) {
  EXPECT_EQ(schedule_differences(prove(one_stage(2)), prove(two_stages(2)))[0].same, 6u);
}

TEST(ScheduleDifference, OfActionsWithEqualNamesItSaysWhichScaleDiffers) {
  Schedule halved = two_stages(1);
  halved.workers[0][1].scale = 0.5;
  const WorkerDifference scales = schedule_differences(prove(two_stages(1)), prove(halved)).at(0);
  EXPECT_EQ(scales.same, 2u) << "F0 and U0";
  EXPECT_EQ(scales.first_a, "B0 with weights 0 (loss of stage 1)");
  EXPECT_EQ(scales.first_b, "B0 with weights 0 (scale 0.5, loss of stage 1)");
}

TEST(ScheduleDifference, OfActionsWithEqualNamesItSaysWhichLossDiffers) {
  const auto in_order =
      [](int first_loss) {  // of the backwards from an own loss and the last one's
        Schedule schedule = two_stages(1);
        schedule.learns_from = {{0, 1}, {1}};
        schedule.auxiliary = {0};
        std::vector<Action>& actions = schedule.workers[0];
        Action backward = actions[1];
        actions.insert(actions.begin() + 1,
                       {.kind = ActionKind::Head, .loss = 0, .weights = Weights::latest()});
        actions[2].loss = first_loss;
        backward.loss = 1 - first_loss;
        actions.insert(actions.begin() + 3, backward);
        return schedule;
      };
  const WorkerDifference losses =
      schedule_differences(prove(in_order(1)), prove(in_order(0))).at(0);
  EXPECT_EQ(losses.first_a, "B0 with weights 0 (loss of stage 1)");
  EXPECT_EQ(losses.first_b, "B0 with weights 0 (loss of stage 0)");
}

TEST(ScheduleDifference, OfSchedulesOfUnequalSizesTheRestIsNothing) {
  const auto workers = schedule_differences(prove(one_stage(2)), prove(two_stages(1)));
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].same, 3u);
  EXPECT_EQ(workers[0].first_a, "F1 with weights 1");
  EXPECT_EQ(workers[0].first_b, "nothing");
  EXPECT_EQ(workers[1].same, 0u);
  EXPECT_EQ(workers[1].first_a, "nothing");
  EXPECT_EQ(workers[1].first_b, "F0 with weights 0");
}

}  // namespace
}  // namespace pipewright
