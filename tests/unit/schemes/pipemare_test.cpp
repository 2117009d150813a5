// SPDX-License-Identifier: Apache-2.0
// PipeMare's three techniques, as numbers in its schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

TEST(PipeMare, ExtrapolatesBackwardsToTheWeightsOfTheirForward) {
  for (const int microbatches : {1, 2, 3}) {
    const Schedule schedule = schedule_of(
        "pipemare", "{}", {.stages = 4, .microbatches = microbatches, .minibatches = 9});
    for (int minibatch = 0; minibatch < 9; ++minibatch) {
      std::map<std::pair<int, int>, int> forward;
      for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
        int& read = forward[{pass.action.stage, pass.action.microbatch}];
        if (pass.action.kind == ActionKind::Forward) {
          EXPECT_EQ(pass.key.ahead, 0);
          read = pass.key.version;
          continue;
        }
        EXPECT_EQ(pass.key.version, minibatch);  // the newest
        EXPECT_EQ(pass.key.version + pass.key.ahead, read);
      }
    }
  }
}

TEST(PipeMare, KeepsNoOldWeights) {
  const Versions versions =
      prove(schedule_of("pipemare", "{}", {.stages = 4, .minibatches = 9})).versions;
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(versions.stages[static_cast<std::size_t>(stage)][0].copies, stage == 3 ? 1 : 2);
}

TEST(PipeMare, WithoutCorrectionIsPipeDreamWithoutStashing) {
  const PipelineShape shape{.stages = 4, .microbatches = 2, .minibatches = 7};
  EXPECT_EQ(schedule_of("pipemare", "{correction: false, annealing: 0}", shape),
            schedule_of("pipedream", "{weight_stashing: false}", shape));
}

/// The rule divides by the staleness of each gradient, which grows while the pipe fills; PipeMare
/// by the delay that it then has.
TEST(PipeMare, DividesRatesAsStalenessLrDoesOnceThePipeIsFull) {
  const PipelineShape shape{.stages = 4, .minibatches = 9};
  const Schedule own =
      schedule_of("pipemare", "{correction: false, annealing: 1000000000000000000}", shape);
  const Schedule ruled =
      with_rates_by_staleness(schedule_of("pipedream", "{weight_stashing: false}", shape),
                              [](int staleness) { return std::pow(std::max(1, staleness), -1.0); });
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t i = 0; i < own.workers[stage].size(); ++i) {
      const Action &a = own.workers[stage][i], &b = ruled.workers[stage][i];
      ASSERT_EQ(a.kind, b.kind);
      if (a.kind != ActionKind::Update) continue;
      const bool full = a.minibatch >= 3 - static_cast<int>(stage);
      const bool divided = stage < 2;  // by more than 1
      EXPECT_EQ(a.scale == b.scale, full || !divided) << stage << " " << a.minibatch;
      EXPECT_LE(a.scale, b.scale) << stage << " " << a.minibatch;
    }
}

TEST(PipeMare, DriftsDecayTheSlowerTheLongerTheDelay) {
  const Schedule schedule =
      schedule_of("pipemare", "{decay: 0.125}", {.stages = 4, .minibatches = 5});
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker)
      if (action.weights.ahead != 0) {
        const PredictionRule& rule = schedule.rules[static_cast<std::size_t>(action.weights.rule)];
        EXPECT_EQ(rule.kind, PredictionRule::Kind::Drift);
        EXPECT_NEAR(std::pow(rule.decay, 3 - action.stage), 0.125, tolerance::kFewOperations);
      }
}

/// Scales of the updates of a stage of four.
std::vector<double> scales(const std::string& options, int stage, int minibatches,
                           int first_minibatch = 0) {
  const Schedule schedule =
      schedule_of("pipemare", options,
                  {.stages = 4, .minibatches = minibatches, .first_minibatch = first_minibatch});
  std::vector<double> all;
  for (const Action& action : schedule.workers[static_cast<std::size_t>(stage)])
    if (action.kind == ActionKind::Update) all.push_back(action.scale);
  return all;
}

TEST(PipeMare, DividesTheLearningRateByAPowerOfTheDelayThatFades) {
  const std::vector<double> first = scales("{annealing: 4}", 0, 6);  // τ = 3
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(first[static_cast<std::size_t>(i)], std::pow(3.0, -std::max(0.0, 1 - i / 4.0)),
                tolerance::kFewOperations);
  EXPECT_EQ(scales("{annealing: 4}", 2, 6), std::vector<double>(6, 1));  // τ = 1
  EXPECT_EQ(scales("{annealing: 4}", 3, 6), std::vector<double>(6, 1));  // τ = 0 counts as 1
  EXPECT_EQ(scales("{annealing: 4}", 0, 4, 2),
            (std::vector<double>(first.begin() + 2, first.end())));
}

TEST(PipeMare, BeginsSynchronously) {
  const Schedule schedule =
      schedule_of("pipemare", "{warmup: 5}", {.stages = 3, .minibatches = 8, .first_minibatch = 2});
  prove(schedule);
  for (int minibatch = 0; minibatch < 8; ++minibatch)
    for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
      const int depth = 2 - pass.action.stage;
      const bool forward = pass.action.kind == ActionKind::Forward;
      const int stale = minibatch < 3 ? 0 : std::min(depth, minibatch - 3);
      EXPECT_EQ(pass.key.version, minibatch - (forward ? stale : 0));
      EXPECT_EQ(pass.key.ahead, forward ? 0 : -stale);
    }
  EXPECT_EQ(scales("{warmup: 5, annealing: 2}", 0, 4, 3),  // two synchronous ones, then τ = 3
            (std::vector<double>{1, 1, std::pow(3.0, -1.0), std::pow(3.0, -0.5)}));
}

}  // namespace
}  // namespace pipewright
