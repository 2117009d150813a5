// SPDX-License-Identifier: Apache-2.0
// When weights that the first stage lends to the last cross, counted on paper, and what is held.
#include "core/schedule/lent_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/schedule/builders.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr std::int64_t kBytes = 100;

PipelineShape lending(int stages, int microbatches, int minibatches) {
  return {.stages = stages,
          .microbatches = microbatches,
          .minibatches = minibatches,
          .skips = {{.from = 0, .to = stages - 1, .lent_bytes = kBytes}}};
}

bool crosses(const LentWeights& lent, const Action& action) {
  return action.kind == ActionKind::Forward ? lent.take(action, 0)
                                            : is_backward(action.kind) && lent.give(action, 0);
}

/// The last stage's passes with which weights or their gradients cross: "F0 B0.1 …".
std::string crossings(const ProvedSchedule& proved) {
  const LentWeights lent(proved.schedule, proved.index, proved.versions);
  const PipelineShape& shape = proved.schedule.shape;
  std::string text;
  for_each_action(proved.schedule, [&](ActionPlace, const Action& action) {
    if (action.stage != shape.stages - 1) return;
    if (crosses(lent, action))
      text += (text.empty() ? "" : " ") + action_name(action, shape.microbatches);
  });
  return text;
}

std::string crossings(const std::string& scheme, const PipelineShape& shape) {
  return crossings(prove(schedule_of(scheme, "{}", shape)));
}

TEST(LentWeights, CrossOnceForAllMicroBatchesThatReadTheSame) {
  EXPECT_EQ(crossings("gpipe", lending(3, 2, 2)), "2F0.0 2B0.0 2F1.0 2B1.0");
  EXPECT_EQ(crossings("one_f_one_b", lending(3, 2, 2)), "2F0.0 2B0.1 2F1.0 2B1.1");
  EXPECT_EQ(crossings("zb_h1", lending(3, 2, 1)), "2F0.0 2b0.1←2");
}

/// The first stage has forwarded three mini-batches when its first update comes, so the last stage
/// computes three with the same weights and gives each one's gradient.
TEST(LentWeights, AreThoseThatTheOwnersForwardHasRead) {
  EXPECT_EQ(crossings("pipedream", lending(3, 1, 5)), "2F0 2B0 2B1 2B2 2F3 2B3 2F4 2B4");
  EXPECT_EQ(crossings("pipedream_2bw", lending(2, 2, 3)), "1F0.0 1B0.1 1B1.1 1F2.0 1B2.1");
}

/// Predictions of one version are as many weights as steps.
TEST(LentWeights, ArePredictionsWhereTheOwnerPredicts) {
  EXPECT_EQ(crossings("spectrain", lending(2, 1, 3)), "1F0 1B0 1B1 1F2 1B2");
}

TEST(LentWeights, CrossOnceInAnEvaluation) {
  PipelineShape shape = lending(3, 1, 4);
  shape.training = false;
  EXPECT_EQ(crossings(prove(evaluation_schedule(shape))), "2F0");
}

/// What crosses in the body of a loop is what crosses more in a schedule that is a round longer.
TEST(LentWeights, CrossInEveryRoundOfALoop) {
  const auto count = [](const std::string& text) { return std::ranges::count(text, ' '); };
  for (const char* scheme : {"gpipe", "pipedream", "pipedream_2bw", "spectrain", "zb_h1"}) {
    const ScheduleMaker make = [&](int minibatches) {
      return schedule_of(scheme, "{}", lending(3, 4, minibatches));
    };
    const auto found = find_loop(make, 60);
    ASSERT_TRUE(found && found->loop) << scheme;
    const LentWeights lent(found->schedule, found->index, found->versions);
    const Loop::Part body = found->loop->bodies[2];
    int crossing = 0;
    for (std::size_t i = body.begin; i < body.end; ++i)
      crossing += crosses(lent, found->schedule.workers[2][i]) ? 1 : 0;
    const int once = found->schedule.shape.minibatches, more = found->loop->step.minibatches;
    EXPECT_EQ(count(crossings(prove(make(once + more)))) - count(crossings(prove(make(once)))),
              crossing)
        << scheme;
  }
}

TEST(LentWeights, AreRefusedWhereTheBorrowersLossDoesNotReachTheOwner) {
  try {
    prove(schedule_of("interlocking", "{width: 2}", lending(4, 1, 2)));
    FAIL() << "nothing is refused";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("stages 0 and 3 share weights and do not learn from the same"),
              std::string::npos)
        << error.message();
  }
}

/// The copies that kept forwards have read, and the sum of gradients.
TEST(LentWeights, AreHeldByTheBorrower) {
  const auto most = [](const std::string& scheme, const PipelineShape& shape, int stage) {
    return most_borrowed(prove(schedule_of(scheme, "{}", shape)), stage);
  };
  EXPECT_EQ(most("gpipe", lending(3, 4, 2), 2), 2 * kBytes) << "a copy and a sum";
  EXPECT_EQ(most("pipedream", lending(3, 1, 9), 2), 2 * kBytes) << "the last stage has one forward";
  EXPECT_EQ(most("gpipe", lending(3, 4, 2), 0), kBytes) << "the sum that arrives";
  EXPECT_EQ(most("gpipe", lending(3, 4, 2), 1), 0);
}

TEST(LentWeights, OfWhichBothHaveACopyTakeTheGradientThatComesAndTheSum) {
  PipelineShape shape = lending(3, 1, 9);
  shape.skips = {};
  shape.tied = {{.first = 0, .second = 2, .numbers = 25, .bytes = kBytes}};
  const ProvedSchedule proved = prove(schedule_of("pipedream", "{}", shape));
  for (const int stage : {0, 2}) EXPECT_EQ(most_borrowed(proved, stage), 2 * kBytes);
  EXPECT_EQ(most_borrowed(proved, 1), 0);
}

TEST(LentWeights, OfSeveralParametersAndReadersCrossForEach) {
  PipelineShape shape = lending(4, 1, 3);
  shape.skips = {{.from = 0, .to = 3, .lent_bytes = kBytes},
                 {.from = 0, .to = 2, .lent_bytes = kBytes},
                 {.from = 0, .to = 2, .lent_bytes = 7, .parameter = 1}};
  const ProvedSchedule proved = prove(schedule_of("gpipe", "{}", shape));
  const LentWeights lent(proved.schedule, proved.index, proved.versions);
  ASSERT_EQ(lent.loans().size(), 3u);
  EXPECT_EQ(lent.loans()[2].parameter, 1);
  EXPECT_EQ(most_borrowed(proved, 2), 2 * (kBytes + 7));
  EXPECT_EQ(most_borrowed(proved, 0), 2 * kBytes + 7) << "the sums that arrive";
}

}  // namespace
}  // namespace pipewright
