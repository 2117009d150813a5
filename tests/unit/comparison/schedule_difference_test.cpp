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

TEST(ScheduleDifference, TheModelsOwnLossIsTheSameInAnyNumberOfStages) {
  Schedule longer = one_stage(2);
  longer.shape.stages = 2;
  longer.shape.placement = {0, 1};
  longer.learns_from = {{1}, {1}};
  for (Action& action : longer.workers[0]) action.loss = 1;
  longer.workers.emplace_back();
  EXPECT_EQ(schedule_differences(prove(one_stage(2)), prove(longer))[0].same, 6u);
}

TEST(ScheduleDifference, OfActionsWithEqualNamesItSaysWhatDiffers) {
  const auto with = [](double scale, int loss) {
    Schedule schedule = one_stage(1);
    schedule.shape.stages = 2;
    schedule.learns_from = {{0, 1}, {1}};
    schedule.workers[0][1].loss = loss;
    schedule.workers[0][1].scale = scale;
    return schedule;
  };
  const WorkerDifference scales =
      schedule_differences(prove(with(1, 1)), prove(with(0.5, 1))).at(0);
  EXPECT_EQ(scales.same, 2u) << "F0 and U0";
  EXPECT_EQ(scales.first_a, "B0 with weights 0 (loss of stage 1)");
  EXPECT_EQ(scales.first_b, "B0 with weights 0 (scale 0.5, loss of stage 1)");
  const WorkerDifference losses = schedule_differences(prove(with(1, 1)), prove(with(1, 0))).at(0);
  EXPECT_EQ(losses.first_a, "B0 with weights 0 (loss of stage 1)");
  EXPECT_EQ(losses.first_b, "B0 with weights 0 (loss of stage 0)");
}

TEST(ScheduleDifference, OfSchedulesOfUnequalSizesTheRestIsNothing) {
  Schedule wider = one_stage(1);
  wider.workers.emplace_back();
  const auto workers = schedule_differences(prove(one_stage(2)), prove(wider));
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].same, 3u);
  EXPECT_EQ(workers[0].first_a, "F1 with weights 1");
  EXPECT_EQ(workers[0].first_b, "nothing");
  EXPECT_FALSE(workers[1].first);
}

}  // namespace
}  // namespace pipewright
