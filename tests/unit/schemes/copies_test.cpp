// SPDX-License-Identifier: Apache-2.0
// How many copies of its weights each stage holds, and how stale they are, scheme by scheme.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr int kMostStages = 6;
constexpr int kMiniBatches = 20;  ///< long enough for the steady state

using OfStage = std::function<int(int stages, int stage)>;

/// Compares one figure of every stage of pipelines of every length.
void expect_figure(int StageVersions::*figure, const std::string& scheme,
                   const std::string& options, int microbatches, const OfStage& expected) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    const PipelineShape shape{
        .stages = stages, .microbatches = microbatches, .minibatches = kMiniBatches};
    const Versions versions = prove(schedule_of(scheme, options, shape)).versions;
    for (int stage = 0; stage < stages; ++stage)
      EXPECT_EQ(versions.stages[static_cast<std::size_t>(stage)][0].*figure,
                expected(stages, stage))
          << scheme << " " << options << ": stage " << stage << " of " << stages;
  }
}

void expect_copies(const std::string& scheme, const std::string& options, const OfStage& expected,
                   int microbatches = 1) {
  expect_figure(&StageVersions::copies, scheme, options, microbatches, expected);
}

void expect_staleness(const std::string& scheme, const std::string& options, const OfStage& forward,
                      const OfStage& backward, int microbatches = 1) {
  expect_figure(&StageVersions::forward_staleness, scheme, options, microbatches, forward);
  expect_figure(&StageVersions::backward_staleness, scheme, options, microbatches, backward);
}

int depth(int stages, int stage) {
  return stages - 1 - stage;
}
int none(int, int) {
  return 0;
}
int one(int, int) {
  return 1;
}
int two(int, int) {
  return 2;
}

TEST(Copies, PipeDreamKeepsOneVersionPerMiniBatchInFlight) {
  expect_copies("pipedream", "{}", [](int stages, int stage) { return stages - stage; });
}

TEST(Copies, VerticalSyncKeepsAsManyAsThereAreStages) {
  expect_copies("pipedream", "{vertical_sync: true}", [](int stages, int) { return stages; });
}

TEST(Copies, DoubleBufferingKeepsTwo) {
  expect_copies("pipedream_2bw", "{}", two, kMostStages);
}

TEST(Copies, PipeOptimKeepsAPredictionAndTheLatest) {
  expect_copies("pipeoptim", "{}",
                [](int stages, int stage) { return depth(stages, stage) == 0 ? 1 : 2; });
  expect_copies("pipeoptim", "{s_offset: 1}", two);
}

TEST(Copies, SpecTrainOneKeepsAPredictionAndTheLatest) {
  expect_copies("spectrain", "{version: 1}", [](int stages, int stage) {
    return depth(stages, stage) + stage / 2 == 0 ? 1 : 2;
  });
}

TEST(Copies, SpecTrainTwoKeepsAPredictionPerMiniBatchInFlightAndTheLatest) {
  expect_copies("spectrain", "{version: 2}", [](int stages, int stage) {
    return depth(stages, stage) == 0 ? 1 : stages - stage + 1;
  });
}

TEST(Copies, SynchronousSchemesAndVanillaKeepOne) {
  for (const char* scheme : {"gpipe", "one_f_one_b", "seq1f1b", "model_parallel", "interlocking"})
    expect_copies(scheme, "{}", one, 4);
  expect_copies("pipedream", "{weight_stashing: false}", one);
}

TEST(Copies, PaciAndFeaturesReplayKeepOneAtAnyStaleness) {
  for (const int microbatches : {1, 2, 4})
    for (const char* scheme : {"paci", "features_replay"})
      expect_copies(scheme, "{}", one, microbatches);
}

TEST(Copies, OfABoundInFlightAreAsManyAsTheBound) {
  for (const int most : {1, 2, 3, 9})
    expect_copies("pipedream", concat("{in_flight: ", most, "}"),
                  [most](int stages, int stage) { return std::min(most, stages - stage); });
}

TEST(Staleness, OfPipeDreamIsItsDepth) {
  expect_staleness("pipedream", "{}", depth, depth);
  expect_staleness("spectrain", "{version: 2, as_coded: true}", depth, depth);
}

TEST(Staleness, OfVanillaIsOfItsForwardsOnly) {
  expect_staleness("pipedream", "{weight_stashing: false}", depth, none);
}

TEST(Staleness, OfPaciAndFeaturesReplayIsOfTheirForwardsOnly) {
  expect_staleness("paci", "{}", depth, none);
  expect_staleness("features_replay", "{}", depth, none);
}

/// AMDP: stage 0 reads n mini-batches before its first backward, the mismatch is min(n, d − i) − 1.
TEST(Staleness, OfABoundInFlightIsOneLessThanTheBound) {
  for (const int most : {1, 2, 3, 9}) {
    const OfStage late = [most](int stages, int stage) {
      return std::min(most, stages - stage) - 1;
    };
    const OfStage of_stage_zero = [late](int stages, int) { return late(stages, 0); };
    const std::string bound = concat("in_flight: ", most);
    expect_staleness("pipedream", concat("{", bound, "}"), late, late);
    expect_staleness("pipedream", concat("{weight_stashing: false, ", bound, "}"), late, none);
    expect_staleness("pipedream", concat("{vertical_sync: true, ", bound, "}"), of_stage_zero,
                     of_stage_zero);
  }
}

TEST(Staleness, IsPredictedAwayByLinearWeightPredictionAtTheDelay) {
  expect_staleness("lwp", "{}", none, none);
  const OfStage overshoot = [](int stages, int stage) { return -depth(stages, stage); };
  expect_staleness("lwp", "{horizon: 2}", overshoot, overshoot);
  const OfStage three_less = [](int stages, int stage) { return depth(stages, stage) - 3; };
  expect_staleness("lwp", "{horizon: 3, unit: steps}", three_less, three_less);
}

TEST(Staleness, WithVerticalSyncIsTheSameOnAllStages) {
  const OfStage most = [](int stages, int) { return stages - 1; };
  expect_staleness("pipedream", "{vertical_sync: true}", most, most);
}

TEST(Staleness, OfDoubleBufferingIsOneUpdate) {
  expect_staleness("pipedream_2bw", "{}", one, one, kMostStages);
}

TEST(Staleness, OfSpecTrainOneIsHalfTheStageAhead) {
  const OfStage ahead = [](int, int stage) { return -(stage / 2); };
  expect_staleness("spectrain", "{version: 1}", ahead, ahead);
}

TEST(Staleness, IsPredictedAwayBySpecTrainTwoAndPipeOptim) {
  expect_staleness("spectrain", "{version: 2}", none, none);
  expect_staleness("pipeoptim", "{}", none, none);
  expect_staleness(
      "pipeoptim", "{s_offset: 1}", [](int, int) { return -1; }, none);
}

TEST(Staleness, IsNoneInSynchronousSchemes) {
  for (const char* scheme : {"gpipe", "one_f_one_b", "seq1f1b", "model_parallel", "interlocking"})
    expect_staleness(scheme, "{}", none, none, 4);
}

TEST(Staleness, OfDelayedSgdIsItsDelay) {
  expect_staleness(
      "delayed_sgd", "{delay: 3}", [](int, int) { return 3; }, [](int, int) { return 3; });
}

TEST(Copies, DelayedSgdKeepsOneMoreThanItsDelay) {
  expect_copies("delayed_sgd", "{delay: 3}", [](int, int) { return 4; });
}

}  // namespace
}  // namespace pipewright
