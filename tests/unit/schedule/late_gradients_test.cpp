// SPDX-License-Identifier: Apache-2.0
// Which update of a copy applies which gradient of the other one, found on paper: worker 0 of
// continuous 1F1B forwards micro-batch f + N behind its backward of f, and the last stage's
// forward, backward and update of that one follow.
#include "core/schedule/late_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

PipelineShape copying(int stages, int microbatches, int minibatches, int replicas = 1) {
  return {.stages = stages,
          .replicas = replicas,
          .microbatches = microbatches,
          .minibatches = minibatches,
          .tied = {{.first = 0, .second = stages - 1, .numbers = 25, .bytes = 100}}};
}

/// The updates of a stage with the mini-batches of the other's gradients that they apply:
/// "2U3: 0 1, …".
std::string applied(const std::string& scheme, const PipelineShape& shape, int stage) {
  const ProvedSchedule proved = prove(schedule_of(scheme, "{}", shape));
  const LateGradients late(proved);
  std::string text;
  for_each_action(proved.schedule, [&](ActionPlace place, const Action& action) {
    if (action.stage != stage || action.replica != 0 || late.taken(place).empty()) return;
    text += concat(text.empty() ? "" : ", ", action_name(action), ":");
    for (const LateGradient& each : late.taken(place)) {
      EXPECT_EQ(std::ranges::count(late.given(each.pass), each), 1);
      text += concat(" ", action_at(proved.schedule, each.pass).minibatch);
    }
  });
  return text;
}

TEST(LateGradients, OfTheLastStageAreThereForTheSameUpdateOfTheFirst) {
  EXPECT_EQ(applied("pipedream", copying(3, 1, 4), 0), "0U0: 0, 0U1: 1, 0U2: 2, 0U3: 3");
  EXPECT_EQ(applied("pipedream_2bw", copying(3, 4, 3), 0), "0U0: 0, 0U1: 1, 0U2: 2");
}

TEST(LateGradients, OfTheFirstStageComeAsManyMicroBatchesLaterAsThereAreStages) {
  EXPECT_EQ(applied("pipedream", copying(3, 1, 6), 2), "2U3: 0, 2U4: 1, 2U5: 2");
  EXPECT_EQ(applied("pipedream", copying(3, 2, 5), 2), "2U2: 0, 2U3: 1, 2U4: 2");
  EXPECT_EQ(applied("pipedream_2bw", copying(3, 4, 3), 2), "2U1: 0, 2U2: 1");
}

TEST(LateGradients, AreAddedBeforeTheSumOverReplicas) {
  EXPECT_EQ(applied("pipedream", copying(2, 2, 3, 2), 1), "1R1: 0, 1R2: 1");
}

TEST(LateGradients, LagByTheMiniBatchesInBetween) {
  const auto lag = [](const PipelineShape& shape, bool back) {
    return LateGradients(prove(schedule_of("pipedream", "{}", shape))).lag(0, back);
  };
  EXPECT_EQ(lag(copying(4, 1, 9), false), 4);
  EXPECT_EQ(lag(copying(4, 1, 9), true), 0);
  EXPECT_EQ(lag(copying(4, 4, 9), false), 1);
}

/// Behind its forward of the micro-batch that brings the news, a stage k from s has the backward of
/// f + k − s + 1 next.
TEST(LateGradients, BetweenAnyTwoStagesLagByTheStagesBetween) {
  PipelineShape shape = copying(4, 1, 9);
  shape.tied = {{.first = 0, .second = 2}, {.first = 1, .second = 3}, {.first = 2, .second = 2}};
  const LateGradients late(prove(schedule_of("pipedream", "{}", shape)));
  EXPECT_EQ(late.lag(0, false), 3);
  EXPECT_EQ(late.lag(1, false), 3);
  for (const bool back : {false, true}) EXPECT_EQ(late.lag(2, back), 0) << "two in one stage";
}

TEST(LateGradients, DoNotExistInAnEvaluation) {
  PipelineShape shape = copying(3, 1, 4);
  shape.training = false;
  const ProvedSchedule proved = prove(evaluation_schedule(shape));
  const LateGradients late(proved);
  for_each_action(proved.schedule, [&](ActionPlace place, const Action&) {
    EXPECT_TRUE(late.given(place).empty());
  });
}

}  // namespace
}  // namespace pipewright
