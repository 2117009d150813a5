// SPDX-License-Identifier: Apache-2.0
/// Golden facts of the papers and their code: which version each pass reads.
#include "schemes.h"
#include "tolerances.h"

#include <gtest/gtest.h>

#include <cmath>

namespace oracle {
namespace {

Experiment pipeline(int stages, const SchemeOptions& scheme, int microbatches = 1) {
  Experiment e;
  e.balance.assign(static_cast<std::size_t>(stages), 1);
  e.scheme = scheme;
  e.microbatches = microbatches;
  return e;
}

const SchemeOptions kPipeDream{.name = "pipedream"};
const SchemeOptions kVanilla{.name = "pipedream", .weight_stashing = false};
const SchemeOptions kSynced{.name = "pipedream", .vertical_sync = true};
const SchemeOptions kSpecTrain1{.name = "spectrain", .version = 1};
const SchemeOptions kSpecTrain2{.name = "spectrain", .version = 2};

/// Versions of the fourth mini-batch (i = 3); "from n to n'" is n' − n steps ahead.
struct Row {
  int N, k, v1_forward_from, v1_forward_to, v1_backward_to, v2_from, pipedream;
};

TEST(SpecTrain, FourthMiniBatchReadsTheVersionsOfTheWorkedTable) {
  for (const Row& row :
       {Row{2, 0, 2, 3, 3, 2, 2}, Row{2, 1, 3, 3, 3, 3, 3}, Row{3, 0, 1, 3, 3, 1, 1},
        Row{3, 1, 2, 3, 3, 2, 2}, Row{3, 2, 3, 4, 4, 3, 3}, Row{4, 0, 0, 3, 3, 0, 0},
        Row{4, 1, 1, 3, 3, 1, 1}, Row{4, 2, 2, 4, 4, 2, 2}, Row{4, 3, 3, 4, 4, 3, 3}}) {
    const auto read = [&row](const SchemeOptions& scheme) {
      return readings(pipeline(row.N, scheme), row.k, 3, 0);
    };
    const auto target = [](const Reading& reading) { return reading.version + reading.ahead; };
    SCOPED_TRACE("N = " + std::to_string(row.N) + ", k = " + std::to_string(row.k));
    EXPECT_EQ(read(kSpecTrain1).forward.version, row.v1_forward_from);
    EXPECT_EQ(target(read(kSpecTrain1).forward), row.v1_forward_to);
    EXPECT_EQ(read(kSpecTrain1).backward.version, 3);
    EXPECT_EQ(target(read(kSpecTrain1).backward), row.v1_backward_to);
    EXPECT_EQ(read(kSpecTrain2).forward, (Reading{row.v2_from, 3 - row.v2_from}));
    EXPECT_EQ(read(kSpecTrain2).backward, read(kSpecTrain2).forward);
    EXPECT_EQ(read(kPipeDream).forward, Reading{row.pipedream});
    EXPECT_EQ(read(kPipeDream).backward, Reading{row.pipedream});
    EXPECT_EQ(read(kVanilla).forward, Reading{row.pipedream});
    EXPECT_EQ(read(kVanilla).backward, Reading{3});
  }
}

// Simulated on stage 0 of 3 with epochs of 6: in the second epoch F(6) B(4), F(6) B(5), then B = F.
TEST(PipeDream, ReadsWhatTheQueueHoldsAfterADrain) {
  const Experiment e = pipeline(3, {.name = "pipedream", .refill = false});
  const std::vector<int> forward{6, 6, 6, 7, 8, 9}, backward{4, 5, 6, 7, 8, 9};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(6 + readings(e, 0, i, 0).forward.version, forward[static_cast<std::size_t>(i)]);
    EXPECT_EQ(queued_version(e, 0, 6 + i, 0), backward[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < 6; ++i)  // nothing is unusual in the first epoch
    EXPECT_EQ(queued_version(e, 0, i, 0), readings(e, 0, i, 0).forward.version);
}

TEST(SpecTrain, ExactModeDoesNotLookBeyondTheUpdatesToComeInAFill) {
  SchemeOptions exact = kSpecTrain1;
  exact.s_mode = "exact";
  const Experiment e = pipeline(5, exact);
  const std::vector<int> ahead{0, 1, 2, 3, 4, 4};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(readings(e, 0, i, 0).forward.ahead, ahead[static_cast<std::size_t>(i)]);
    EXPECT_EQ(readings(e, 2, i, 0).forward.ahead, std::min(i, 2) + 1);
    EXPECT_EQ(readings(e, 4, i, 0).forward.ahead, 2);
  }
}

TEST(PipeDream, FirstOfThreeStagesReadsTheVersionsOfTheGanttChart) {
  const std::vector<int> forwards{0, 0, 0, 1, 2, 3};
  for (int i = 0; i < 6; ++i) {
    const Reading expected{forwards[static_cast<std::size_t>(i)]};
    EXPECT_EQ(readings(pipeline(3, kPipeDream), 0, i, 0).backward, expected);
    EXPECT_EQ(readings(pipeline(3, kVanilla), 0, i, 0).forward, expected);
    EXPECT_EQ(readings(pipeline(3, kVanilla), 0, i, 0).backward, Reading{i});
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(readings(pipeline(3, kSynced), k, i, 0).forward, expected);
  }
}

// Stage 0 of 4 forwards two mini-batches before its first backward: F0 F1 B0 F2 B1 F3 B2 …
TEST(PipeDream, WithTwoInFlightIsOneVersionLateBeforeTheLastStage) {
  const Experiment e = pipeline(4, {.name = "pipedream", .in_flight = 2});
  const std::vector<int> versions{0, 0, 1, 2, 3};
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(readings(e, k, i, 0).forward, Reading{versions[static_cast<std::size_t>(i)]});
      EXPECT_EQ(readings(e, k, i, 0).backward, readings(e, k, i, 0).forward);
    }
    EXPECT_EQ(readings(e, 3, i, 0).forward, Reading{i});
  }
}

TEST(Lwp, PredictsAMultipleOfWhatIsPendingOrANumberOfSteps) {
  Experiment e = pipeline(3, {.name = "lwp", .horizon = 2});
  const std::vector<Reading> twice{{0, 0}, {0, 2}, {0, 4}, {1, 4}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(readings(e, 0, i, 0).forward, twice[static_cast<std::size_t>(i)]);
    EXPECT_EQ(readings(e, 0, i, 0).backward, twice[static_cast<std::size_t>(i)]);
    EXPECT_EQ(readings(e, 2, i, 0).forward, Reading{i});
  }
  e.scheme = {.name = "lwp", .horizon = 3, .horizon_in_steps = true};
  EXPECT_EQ(readings(e, 0, 3, 0).forward, (Reading{1, 3}));
  EXPECT_EQ(readings(e, 2, 3, 0).forward, (Reading{3, 3}));
}

TEST(FeaturesReplay, ReadsTheNewestWeightsAsPaciDoes) {
  for (const char* name : {"features_replay", "paci"}) {
    const Experiment e = pipeline(3, {.name = name});
    EXPECT_EQ(replays(e), e.scheme.name == "features_replay");
    EXPECT_EQ(readings(e, 0, 5, 0).forward, Reading{3});
    EXPECT_EQ(readings(e, 0, 5, 0).backward, Reading{5});
  }
}

TEST(PipeOptim, FifthMiniBatchOfFourStagesReadsTheVersionsOfThePapersFigure) {
  const Experiment e = pipeline(4, {.name = "pipeoptim"});  // the figure counts versions from 1
  EXPECT_EQ(readings(e, 0, 4, 0).forward, (Reading{1, 3}));
  EXPECT_EQ(readings(e, 1, 4, 0).forward, (Reading{2, 2}));
  EXPECT_EQ(readings(e, 2, 4, 0).forward, (Reading{3, 1}));
  EXPECT_EQ(readings(e, 3, 4, 0).forward, (Reading{4, 0}));
  for (int k = 0; k < 4; ++k) EXPECT_EQ(readings(e, k, 4, 0).backward, Reading{4});
}

TEST(PipeOptim, CountsStepsNotMicroBatches) {
  SchemeOptions scheme{.name = "pipeoptim"};
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 5, 0).forward,
            (Reading{3, 2}));  // f = 10, 7 backwards done
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 5, 1).forward, (Reading{4, 1}));
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 0, 0).forward, (Reading{0, 2}));  // ⌊0/2⌋ − ⌊−3/2⌋
  scheme.s_mode = "exact";
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 5, 0).forward, (Reading{3, 2}));
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 5, 1).forward, (Reading{4, 1}));
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 0, 0).forward, (Reading{0, 0}));
  scheme.s_offset = 1;
  EXPECT_EQ(readings(pipeline(4, scheme, 2), 0, 5, 1).forward, (Reading{4, 2}));
}

TEST(XPipe, SiblingsReadWhatTheBellwetherPredicted) {
  const Experiment e = pipeline(4, {.name = "xpipe"}, 3);
  // k = 0: s_F = round((4 + 3 − 0 − 2)/3) = round(5/3), s_B = round(2/3); f = 6 with 3 backwards
  // done.
  for (int j = 0; j < 3; ++j) {
    EXPECT_EQ(readings(e, 0, 2, j).forward, (Reading{1, 2}));
    EXPECT_EQ(readings(e, 0, 2, j).backward, (Reading{2, 1, Pass::Backward}));
  }
  // k = 3: s_F = round((7 − 1.5 − 2)/3) = round(3.5/3), s_B = round((3 + 1 − 1)/3).
  EXPECT_EQ(readings(e, 3, 2, 1).forward, (Reading{2, 1}));
  EXPECT_EQ(readings(e, 3, 2, 1).backward, (Reading{2, 1, Pass::Backward}));
}

TEST(XPipe, WithOneMicroBatchIsSpecTrainOnStagesOfEvenNumber) {
  const Experiment e = pipeline(6, {.name = "xpipe"});
  for (int k = 0; k < 6; k += 2) {
    const Readings expected = readings(pipeline(6, kSpecTrain1), k, 9, 0);
    EXPECT_EQ(readings(e, k, 9, 0).forward, expected.forward);
    EXPECT_EQ(readings(e, k, 9, 0).backward, expected.backward);
  }
}

TEST(PipeMare, ReadsItsForwardsWeightsBackFromTheNewest) {
  SchemeOptions scheme{.name = "pipemare"};
  EXPECT_EQ(readings(pipeline(4, scheme), 0, 5, 0).forward, Reading{2});
  EXPECT_EQ(readings(pipeline(4, scheme), 0, 5, 0).backward, (Reading{5, -3, Pass::Backward}));
  EXPECT_EQ(readings(pipeline(4, scheme), 0, 1, 0).backward, (Reading{1, -1, Pass::Backward}));
  EXPECT_EQ(readings(pipeline(4, scheme), 3, 5, 0).backward, (Reading{5, 0, Pass::Backward}));
}

TEST(PipeMare, RatesAndDecaysFollowTheDelay) {
  SchemeOptions scheme{.name = "pipemare", .annealing = 4, .decay = 0.125, .warmup = 2};
  const Experiment e = pipeline(4, scheme);
  EXPECT_DOUBLE_EQ(rate_factor(e, 0, 1), 1);
  EXPECT_DOUBLE_EQ(rate_factor(e, 0, 2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(rate_factor(e, 1, 4), 1 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(rate_factor(e, 0, 6), 1);
  EXPECT_DOUBLE_EQ(rate_factor(e, 3, 2), 1);
  EXPECT_DOUBLE_EQ(drift_decay(e, 0), 0.5);
  EXPECT_DOUBLE_EQ(drift_decay(e, 3), 0.125);
}

TEST(OptimizerOfStage, HasAsyncPPsMomentum) {
  Experiment e = pipeline(4, kPipeDream);
  e.optimizer = {.name = "nadamw", .beta1 = 0.9, .momentum_by_delay = 0.98};
  const std::vector<double> momenta{0.96, 0.94, 0.92, 0.9};  // 0.9 + 0.08 τ/4, τ = 3 − k
  for (int k = 0; k < 4; ++k)
    EXPECT_NEAR(optimizer_of_stage(e, k).beta1, momenta[static_cast<std::size_t>(k)],
                tolerance::kFewOperations);
  e.microbatches = 2;  // τ = ⌈(3 − k)/2⌉
  EXPECT_NEAR(optimizer_of_stage(e, 0).beta1, 0.94, tolerance::kFewOperations);
  EXPECT_NEAR(optimizer_of_stage(e, 2).beta1, 0.92, tolerance::kFewOperations);
  e.scheme = {.name = "delayed_sgd", .delay = {7}};
  EXPECT_NEAR(optimizer_of_stage(e, 3).beta1, 0.98, tolerance::kFewOperations);
  e.scheme = {.name = "gpipe"};
  EXPECT_DOUBLE_EQ(optimizer_of_stage(e, 0).beta1, 0.9);
}

TEST(Interlocking, StageLearnsFromTheFurthestLossInReach) {
  const auto shares = [](int width, const std::string& combine, int stage) {
    const Experiment e = pipeline(4, {.name = "interlocking", .width = width, .combine = combine});
    std::vector<double> all;
    for (int site = 0; site < 4; ++site) all.push_back(share_of_loss(e, stage, site));
    return all;
  };
  using Shares = std::vector<double>;
  EXPECT_EQ(shares(1, "furthest", 1), (Shares{0, 1, 0, 0}));
  EXPECT_EQ(shares(3, "furthest", 0), (Shares{0, 0, 1, 0}));
  EXPECT_EQ(shares(3, "furthest", 2), (Shares{0, 0, 0, 1}));
  EXPECT_EQ(shares(0, "furthest", 0), (Shares{0, 0, 0, 1}));
  EXPECT_EQ(shares(9, "furthest", 0), (Shares{0, 0, 0, 1}));
  EXPECT_EQ(shares(2, "sum", 1), (Shares{0, 1, 1, 0}));
  EXPECT_EQ(shares(2, "mean", 2), (Shares{0, 0, 0.5, 0.5}));
  EXPECT_EQ(shares(2, "mean", 3), (Shares{0, 0, 0, 1}));
}

}  // namespace
}  // namespace oracle
