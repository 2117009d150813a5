// SPDX-License-Identifier: Apache-2.0
// The estimated time of runs: how it grows with what a run does, and the operations it rests on.
#include "core/sweep/sweep_duration.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

constexpr double kStart = 0.3;  // of a run, as the estimate assumes

/// 64 training samples of 16 values in 4 mini-batches, and 32 test samples.
std::string with(const std::string& rest, const std::string& model = "widths: [16, 8, 4]") {
  return concat("{dataset: {name: synthetic, train: 64, test: 32, shape: [16], classes: 4}, ",
                "model: {name: mlp, ", model,
                "}, loader: {batch_size: 16}, pipeline: {stages: 1}, ",
                "scheme: {name: gpipe}, optimizer: {name: sgd, lr: 0.1}, ", rest, "}");
}

TEST(SweepDuration, GrowsWithRunsAndEpochs) {
  Laboratory once(with("train: {epochs: 3}")), twice(with("train: {epochs: 6}"));
  const Plan three = once.plan(), six = twice.plan();
  SweepDuration duration;
  duration.add(three, 1);
  const double one = duration.seconds().value();
  EXPECT_GT(one, kStart);
  duration.add(three, 4);
  EXPECT_DOUBLE_EQ(duration.seconds().value(), 5 * one);
  duration.add(six, 1);  // of the same layers, so they are not timed again
  EXPECT_NEAR(duration.seconds().value(), 5 * one + kStart + 2 * (one - kStart), 1e-12 * one);
}

/// A sample costs 2 · (16 · 8 + 8 · 4) operations forwards and twice as many backwards.
TEST(SweepDuration, CountsOperationsOfTrainingAndEvaluation) {
  Laboratory laboratory(with("train: {epochs: 3, evaluate_every: 2}"));
  SweepDuration duration;
  duration.add(laboratory.plan(), 2);
  const double forward = 2.0 * (16 * 8 + 8 * 4);
  EXPECT_DOUBLE_EQ(duration.operations(), 2 * (3 * 64 * 3 * forward + 32 * forward));
}

TEST(SweepDuration, CountsARecomputedForwardTwice) {
  Laboratory laboratory(
      with("train: {epochs: 1}, pipeline.recompute: always, pipeline.microbatches: 2"));
  SweepDuration duration;
  duration.add(laboratory.plan(), 1);
  const double forward = 2.0 * (16 * 8 + 8 * 4);
  EXPECT_DOUBLE_EQ(duration.operations(), 64 * 4 * forward + 32 * forward);
}

TEST(SweepDuration, IsNotKnownOfWhatIsTooLargeToTime) {
  Laboratory large(with("train: {epochs: 1}", "widths: [16, 20000, 20000, 4]"));
  Laboratory small(with("train: {epochs: 1}"));
  SweepDuration duration;
  duration.add(large.plan(), 1);
  EXPECT_FALSE(duration.seconds());
  EXPECT_GT(duration.operations(), 2.0 * 20000 * 20000 * 64 * 3);
  duration.add(small.plan(), 1);  // its rate stands in
  EXPECT_GT(duration.seconds().value(), 0);
}

}  // namespace
}  // namespace pipewright::test
