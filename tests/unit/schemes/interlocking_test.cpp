// SPDX-License-Identifier: Apache-2.0
// N-wise local learning: which losses a stage learns from, which it relays, and what it waits for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/as_size.h"
#include "core/schedule/slots.h"
#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

using Losses = std::vector<std::vector<int>>;
using Sites = std::vector<int>;

Schedule interlocking(const std::string& options, int stages, int minibatches = 1) {
  return schedule_of("interlocking", "{" + options + "}",
                     {.stages = stages, .minibatches = minibatches});
}

Losses learned(const std::string& options, int stages) {
  return interlocking(options, stages).learns_from;
}

Sites sites(const std::string& options, int stages) {
  return SchemeReading("interlocking", "{" + options + "}").scheme->auxiliary_sites(stages);
}

int count(const Schedule& schedule, ActionKind kind) {
  int all = 0;
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) all += action.kind == kind ? 1 : 0;
  return all;
}

TEST(Interlocking, LearnsFromTheFurthestLossItReaches) {
  EXPECT_EQ(learned("width: 1", 4), (Losses{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(learned("width: 2", 4), (Losses{{1}, {2}, {3}, {3}}));
  EXPECT_EQ(learned("width: 3", 4), (Losses{{2}, {3}, {3}, {3}}));
  EXPECT_EQ(learned("width: 4", 4), (Losses{{3}, {3}, {3}, {3}}));
}

TEST(Interlocking, WidthAllAndWidthsBeyondThePipelineAreEndToEnd) {
  for (int stages = 1; stages <= 5; ++stages)
    for (const char* width : {"width: all", "width: 5", "width: 1000"})
      EXPECT_EQ(learned(width, stages), Losses(as_size(stages), {stages - 1})) << width;
}

TEST(Interlocking, SumAndMeanLearnFromAllItReaches) {
  for (const char* combine : {"width: 3, combine: sum", "width: 3, combine: mean"})
    EXPECT_EQ(learned(combine, 4), (Losses{{0, 1, 2}, {1, 2, 3}, {2, 3}, {3}}));
}

TEST(Interlocking, MeanDividesByTheLossesAStageReaches) {
  for (const auto& worker : interlocking("width: 3, combine: mean", 4).workers)
    for (const Action& action : worker)
      if (action.kind == ActionKind::Backward) {
        EXPECT_EQ(action.scale, 1.0 / std::min(3, 4 - action.stage));
      }
  for (const char* combine : {"furthest", "sum"})
    for (const auto& worker : interlocking(concat("width: 3, combine: ", combine), 4).workers)
      for (const Action& action : worker) EXPECT_EQ(action.scale, 1);
}

TEST(Interlocking, EveryStageButTheLastHasAHead) {
  EXPECT_EQ(sites("width: 2", 4), (Sites{0, 1, 2}));
  EXPECT_EQ(sites("width: all", 4), (Sites{0, 1, 2}));
  EXPECT_EQ(sites("width: 2", 1), Sites{});
  EXPECT_EQ(interlocking("width: 2", 4).auxiliary, (Sites{0, 1, 2}));
}

TEST(Interlocking, HeadsNobodyLearnsFromCanBeLeftOut) {  // useful ones: width−1 … N−2
  const std::string only_useful = ", train_unused_heads: false";
  EXPECT_EQ(sites("width: 1" + only_useful, 4), (Sites{0, 1, 2}));
  EXPECT_EQ(sites("width: 2" + only_useful, 4), (Sites{1, 2}));
  EXPECT_EQ(sites("width: 3" + only_useful, 4), (Sites{2}));
  EXPECT_EQ(sites("width: 4" + only_useful, 4), Sites{});
  EXPECT_EQ(sites("width: 3, combine: sum" + only_useful, 4), (Sites{0, 1, 2}));
}

TEST(Interlocking, OtherSchemesNeedNoHeads) {
  for (const SchemeCase& each : every_scheme())
    if (each.name != "interlocking") {
      EXPECT_EQ(SchemeReading(each.name, each.options).scheme->auxiliary_sites(4), Sites{});
    }
}

/// (K−N)(N−1) input-only backwards are needed: 2, 2, 0 for four stages.
TEST(Interlocking, RelaysNoMoreThanItMust) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int width = 1; width <= stages; ++width)
      EXPECT_EQ(count(interlocking(concat("width: ", width), stages), ActionKind::BackwardInput),
                (stages - width) * (width - 1))
          << width << "-wise, " << stages << " stages";
}

/// Gradient tensors from stage k+1 to k: max(0, m(k) − max(k+1, N−1) + 1), counted from 0.
TEST(Interlocking, SendsNoMoreGradientsThanItMust) {
  for (int stages = 2; stages <= 6; ++stages)
    for (int width = 1; width <= stages; ++width) {
      const Schedule schedule = interlocking(concat("width: ", width), stages);
      for (int stage = 0; stage + 1 < stages; ++stage) {
        int taken = 0;
        for (const Action& action : schedule.workers[as_size(stage)])
          taken +=
              (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput) &&
              action.loss > stage;
        const int furthest = std::min(stage + width - 1, stages - 1);
        EXPECT_EQ(taken, std::max(0, furthest - std::max(stage + 1, width - 1) + 1));
      }
    }
}

TEST(Interlocking, EveryPassUsesTheWeightsOfItsOwnMiniBatch) {
  const Schedule schedule = interlocking("width: 3, combine: sum", 4, 4);
  for (int minibatch = 0; minibatch < 4; ++minibatch)
    for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
      EXPECT_EQ(pass.key, (WeightKey{minibatch, 0, 0}));
      EXPECT_EQ(pass.applied_to, minibatch);
    }
}

TEST(Interlocking, NothingOfAStageWaitsBeyondItsFurthestLoss) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int width = 1; width <= stages; ++width) {
      const Schedule whole = interlocking(concat("width: ", width), stages);
      const SlotTimes times = slot_times(whole);
      for (int stage = 0; stage < stages; ++stage) {
        Schedule without = whole;  // the stages beyond never do anything
        for (int beyond = std::min(stage + width, stages); beyond < stages; ++beyond)
          without.workers[as_size(beyond)].clear();
        EXPECT_EQ(slot_times(without).start[as_size(stage)], times.start[as_size(stage)])
            << "stage " << stage << " of " << stages << ", " << width << "-wise";
      }
    }
}

TEST(Interlocking, EarlyStagesRunAheadOfLateOnes) {
  const Schedule schedule = interlocking("width: 2", 6, 2);
  const SlotTimes times = slot_times(schedule);
  auto start = [&](int stage, ActionKind kind, int minibatch) {
    const auto& actions = schedule.workers[as_size(stage)];
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind == kind && actions[i].minibatch == minibatch)
        return times.start[as_size(stage)][i];
    return -1;
  };
  EXPECT_LT(start(0, ActionKind::Forward, 1), start(5, ActionKind::Update, 0));
  const Schedule whole = interlocking("width: all", 4, 2);
  EXPECT_EQ(slot_times(whole).makespan, 24);  // end to end: one mini-batch at a time
}

}  // namespace
}  // namespace pipewright
