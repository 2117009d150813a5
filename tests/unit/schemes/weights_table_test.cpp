// SPDX-License-Identifier: Apache-2.0
// The weights a mini-batch computes with, as in SpecTrain's and PipeDream's papers: "1->3" is
// version 1 predicted to version 3.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

std::string text_of(const WeightKey& key) {
  return key.ahead == 0 ? concat(key.version) : concat(key.version, "->", key.version + key.ahead);
}

/// "forward / backward" of one mini-batch at one stage.
std::string weights_of(const std::string& scheme, const std::string& options, int stages, int stage,
                       int minibatch) {
  const Schedule schedule =
      schedule_of(scheme, options, {.stages = stages, .minibatches = minibatch + 3});
  std::string forward, backward;
  for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
    if (pass.action.stage != stage) continue;
    EXPECT_EQ(pass.applied_to, minibatch) << "every gradient lands on W(i)";
    (pass.action.kind == ActionKind::Forward ? forward : backward) = text_of(pass.key);
  }
  return forward + " / " + backward;
}

struct Row {
  int stages, stage;
  const char *spectrain_1, *spectrain_2, *pipedream, *vanilla;
};

// Mini-batch 3: the fourth.
constexpr Row kTable[] = {
    {2, 0, "2->3 / 3", "2->3 / 2->3", "2 / 2", "2 / 3"},
    {2, 1, "3 / 3", "3 / 3", "3 / 3", "3 / 3"},
    {3, 0, "1->3 / 3", "1->3 / 1->3", "1 / 1", "1 / 3"},
    {3, 1, "2->3 / 3", "2->3 / 2->3", "2 / 2", "2 / 3"},
    {3, 2, "3->4 / 3->4", "3 / 3", "3 / 3", "3 / 3"},
    {4, 0, "0->3 / 3", "0->3 / 0->3", "0 / 0", "0 / 3"},
    {4, 1, "1->3 / 3", "1->3 / 1->3", "1 / 1", "1 / 3"},
    {4, 2, "2->4 / 3->4", "2->3 / 2->3", "2 / 2", "2 / 3"},
    {4, 3, "3->4 / 3->4", "3 / 3", "3 / 3", "3 / 3"},
};

TEST(WeightsTable, OfThePapers) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(concat(row.stages, " stages, stage ", row.stage));
    auto weights = [&](const std::string& scheme, const std::string& options) {
      return weights_of(scheme, options, row.stages, row.stage, 3);
    };
    EXPECT_EQ(weights("spectrain", "{version: 1}"), row.spectrain_1);
    EXPECT_EQ(weights("spectrain", "{version: 2}"), row.spectrain_2);
    EXPECT_EQ(weights("pipedream", "{}"), row.pipedream);
    EXPECT_EQ(weights("pipedream", "{weight_stashing: false}"), row.vanilla);
    EXPECT_EQ(weights("spectrain", "{version: 2, as_coded: true}"), row.pipedream);
  }
}

// Simulated with the authors' code on stage 0 of 3 after an epoch of 6: F(6) B(4), F(6) B(5), then
// consistent.
TEST(PipeDream, ReadsTheQueueOfBeforeTheDrainWhereItIsNotFilledAnew) {
  for (const auto& [scheme, options] :
       {std::pair("pipedream", "{refill: false}"),
        std::pair("spectrain", "{version: 2, as_coded: true, refill: false}")}) {
    EXPECT_EQ(weights_of(scheme, options, 3, 0, 0), "0 / -2");
    EXPECT_EQ(weights_of(scheme, options, 3, 0, 1), "0 / -1");
    EXPECT_EQ(weights_of(scheme, options, 3, 0, 2), "0 / 0");
    EXPECT_EQ(weights_of(scheme, options, 3, 0, 5), "3 / 3");
    EXPECT_EQ(weights_of(scheme, options, 3, 1, 0), "0 / -1");
    EXPECT_EQ(weights_of(scheme, options, 3, 1, 1), "0 / 0");
    EXPECT_EQ(weights_of(scheme, options, 3, 2, 0), "0 / 0");
  }
}

TEST(PipeDream, KeepsTheQueueFromScheduleToSchedule) {
  for (const int minibatches : {1, 2, 9}) {
    const Schedule schedule =
        schedule_of("pipedream", "{refill: false}", {.stages = 4, .minibatches = minibatches});
    EXPECT_EQ(schedule.earlier, (std::vector{3, 2, 1, 0}));
    const Versions versions = prove(schedule).versions;
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(versions.stages[static_cast<std::size_t>(stage)][0].copies, 4 - stage);
      for (const ActionWeights& weights : versions.workers[static_cast<std::size_t>(stage)])
        for (const WeightKey& freed : weights.frees)
          EXPECT_LT(freed.version, minibatches - (3 - stage));
    }
  }
}

TEST(PipeOptim, PredictsTheForwardOnly) {  // its paper's figure, mini-batch 5 of 4 stages
  EXPECT_EQ(weights_of("pipeoptim", "{}", 4, 0, 4), "1->4 / 4");
  EXPECT_EQ(weights_of("pipeoptim", "{}", 4, 1, 4), "2->4 / 4");
  EXPECT_EQ(weights_of("pipeoptim", "{}", 4, 2, 4), "3->4 / 4");
  EXPECT_EQ(weights_of("pipeoptim", "{}", 4, 3, 4), "4 / 4");
}

TEST(PipeOptim, AsCodedPredictsOneStepMore) {
  EXPECT_EQ(weights_of("pipeoptim", "{s_offset: 1}", 4, 0, 4), "1->5 / 4");
  EXPECT_EQ(weights_of("pipeoptim", "{s_offset: 1}", 4, 3, 4), "4->5 / 4");
}

TEST(SpecTrain, AimsBothPassesAtOneTime) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int stage = 0; stage < stages; ++stage) {
      const Schedule schedule =
          schedule_of("spectrain", "{version: 1}", {.stages = stages, .minibatches = 12});
      for (const PassWeights& pass : weights_used(prove(schedule), 9))
        EXPECT_EQ(pass.key.version + pass.key.ahead, 9 + pass.action.stage / 2);
    }
}

TEST(PipeDream, VerticalSyncUsesOneVersionOnAllStages) {
  for (int stages = 1; stages <= 5; ++stages) {
    const Schedule schedule =
        schedule_of("pipedream", "{vertical_sync: true}", {.stages = stages, .minibatches = 9});
    for (int minibatch = 0; minibatch < 9; ++minibatch)
      for (const PassWeights& pass : weights_used(prove(schedule), minibatch))
        EXPECT_EQ(pass.key, (WeightKey{std::max(0, minibatch - stages + 1), 0, 0}));
  }
}

// The first D forwards after a fill have fewer updates ahead of them than D.
TEST(ColdStart, ExactCountsTheUpdatesThatArePending) {
  for (const char* scheme : {"spectrain", "pipeoptim"}) {
    const std::string version = scheme == std::string("spectrain") ? "version: 2, " : "";
    const std::string exact = "{" + version + "s_mode: exact}";
    const std::string constant = "{" + version + "s_mode: constant}";
    for (int minibatch = 0; minibatch < 6; ++minibatch) {
      const std::string forward = concat(std::max(0, minibatch - 3));
      const std::string pending = concat(minibatch),
                        steady = concat(std::max(0, minibatch - 3) + 3);
      const std::string with_exact = weights_of(scheme, exact, 4, 0, minibatch);
      const std::string with_constant = weights_of(scheme, constant, 4, 0, minibatch);
      EXPECT_TRUE(with_exact.starts_with(minibatch == 0 ? "0 /" : concat(forward, "->", pending)))
          << with_exact;
      EXPECT_TRUE(with_constant.starts_with(concat(forward, "->", steady))) << with_constant;
    }
  }
}

TEST(ColdStart, ExactOfVersionOneStillAimsBeyond) {
  EXPECT_EQ(weights_of("spectrain", "{s_mode: exact}", 4, 2, 0), "0->1 / 0->1");
  EXPECT_EQ(weights_of("spectrain", "{s_mode: exact}", 4, 2, 1), "0->2 / 1->2");
  EXPECT_EQ(weights_of("spectrain", "{s_mode: constant}", 4, 2, 0), "0->2 / 0->1");
}

// A drained pipe keeps no old versions, unless the backwards of a defect read them.
TEST(ColdStart, EveryScheduleBeginsAtVersionZero) {
  for (const SchemeCase& each : every_scheme()) {
    const int stages = each.name == "data_parallel" ? 1 : 3;
    const Schedule schedule = schedule_of(
        each.name, each.options,
        {.stages = stages, .microbatches = 3, .minibatches = 2, .first_minibatch = 100});
    for (const PassWeights& pass : weights_used(prove(schedule), 0)) {
      if (!schedule.earlier.empty() && pass.action.kind != ActionKind::Forward) continue;
      EXPECT_EQ(pass.key.version, 0) << each.name << " " << each.options;
    }
  }
}

TEST(DelayedSgd, IsPipeDreamWithoutThePipeline) {
  for (int stages = 1; stages <= 5; ++stages) {
    std::string delays;
    for (int stage = 0; stage < stages; ++stage)
      delays += concat(stage == 0 ? "" : ", ", stages - 1 - stage);
    const PipelineShape shape{.stages = stages, .minibatches = 9};
    const Schedule delayed = schedule_of("delayed_sgd", "{delay: [" + delays + "]}", shape);
    const Schedule pipedream = schedule_of("pipedream", "{}", shape);
    for (int minibatch = 0; minibatch < 9; ++minibatch) {
      const auto a = weights_used(prove(delayed), minibatch),
                 b = weights_used(prove(pipedream), minibatch);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].action.kind, b[i].action.kind);
        EXPECT_EQ(a[i].key, b[i].key);
        EXPECT_EQ(a[i].applied_to, b[i].applied_to);
      }
    }
  }
}

TEST(DelayedSgd, OneDelayIsForAllStages) {
  for (const int stage : {0, 1, 2}) {
    EXPECT_EQ(weights_of("delayed_sgd", "{delay: 2}", 3, stage, 5), "3 / 3");
    EXPECT_EQ(weights_of("delayed_sgd", "{delay: 2}", 3, stage, 1), "0 / 0");
    EXPECT_EQ(weights_of("delayed_sgd", "{delay: 0}", 3, stage, 5), "5 / 5");
  }
}

/// Predictions made in the last of four stages, for ten mini-batches.
int predictions_of_the_last_stage(const std::string& options) {
  const Versions versions =
      prove(schedule_of("spectrain", options, {.stages = 4, .minibatches = 10})).versions;
  return static_cast<int>(
      std::ranges::count_if(versions.workers.back(), [](const auto& each) { return each.makes; }));
}

TEST(SpecTrain, PredictsOnceWhereTheBackwardFollowsItsForwardUnlessTheRulesDiffer) {
  EXPECT_EQ(predictions_of_the_last_stage("{}"), 10);
  EXPECT_EQ(predictions_of_the_last_stage("{velocity: geometric}"), 10);
  EXPECT_EQ(predictions_of_the_last_stage("{velocity: lookahead}"), 20);
  EXPECT_EQ(predictions_of_the_last_stage("{prediction_lr: last}"), 20);
}

TEST(SpecTrain, AsCodedMultipliesTheLearningRateOfEachStage) {
  const Schedule schedule =
      schedule_of("spectrain", "{version: 2, as_coded: true}", {.stages = 4, .minibatches = 3});
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker)
      EXPECT_EQ(action.scale, action.kind == ActionKind::Update ? 4 - action.stage : 1);
}

TEST(SpecTrain, ItsVelocityIsARuleOfPrediction) {
  using Kind = PredictionRule::Kind;
  auto rules = [](const std::string& options) {
    return schedule_of("spectrain", options, {.stages = 2}).rules;
  };
  EXPECT_EQ(rules("{velocity: buffer}")[0].kind, Kind::Optimizer);
  EXPECT_EQ(rules("{velocity: geometric}")[1].kind, Kind::Geometric);
  const auto lookahead = rules("{velocity: lookahead}");  // the backward without the last gradient
  EXPECT_EQ(lookahead[0], (PredictionRule{.kind = Kind::Lookahead, .decay = 1}));
  EXPECT_EQ(lookahead[1], (PredictionRule{.kind = Kind::Lookahead, .decay = 0}));
}

TEST(PipeOptim, MayPredictTheDecayOfAdamW) {
  auto rule = [](const std::string& options) {
    return schedule_of("pipeoptim", options, {.stages = 2}).rules.at(0);
  };
  EXPECT_FALSE(rule("{}").weight_decay);
  EXPECT_TRUE(rule("{adamw_decay_in_prediction: true}").weight_decay);
  EXPECT_EQ(rule("{velocity: lookahead}").kind, PredictionRule::Kind::Lookahead);
}

}  // namespace
}  // namespace pipewright
