// SPDX-License-Identifier: Apache-2.0
// Where the pipeline is emptied: epochs' ends and checkpoints, the same for every run.
#include "core/training/drain_points.h"
#include "core/experiment/reading.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// Of an experiment with six mini-batches an epoch: the points, those with a checkpoint negative.
std::vector<std::int64_t> points(const std::string& changes) {
  Laboratory laboratory(changes);
  const DrainPoints drains = laboratory.plan().drains;
  std::vector<std::int64_t> all;
  for (std::int64_t at = 0; at < drains.minibatches;) {
    const std::int64_t next = drains.next(at);
    EXPECT_LE(next - at, drains.longest());
    EXPECT_EQ(drains.previous(next), at);
    all.push_back(drains.checkpoint_at(next) ? -next : next);
    at = next;
  }
  EXPECT_EQ(laboratory.plan().training.schedule.shape.minibatches, drains.longest());
  return all;
}

using Points = std::vector<std::int64_t>;

TEST(DrainPoints, AreTheEpochsEnds) {
  EXPECT_EQ(points("{train.epochs: 3}"), (Points{-6, -12, 18}));
  EXPECT_EQ(points("{train.epochs: 3, train.checkpoint: {every: 2}}"), (Points{6, -12, 18}));
  EXPECT_EQ(points("{train.epochs: 3, train.checkpoint: {every: 0}}"), (Points{6, 12, 18}));
}

TEST(DrainPoints, EndWithTheLastStepWhereTheLengthIsGivenInSteps) {
  EXPECT_EQ(points("{train.epochs: 0, train.steps: 14}"), (Points{-6, -12, 14}));
  EXPECT_EQ(points("{train.epochs: 0, train.steps: 4}"), (Points{4}));
  EXPECT_EQ(points("{train.epochs: 0, train.steps: 12}"), points("{train.epochs: 2}"));
  EXPECT_EQ(points("{train.epochs: 0, train.steps: 14, train.drain: never}"), (Points{14}));
}

TEST(DrainPoints, HaveEvaluationsBetweenThemThatDrainNothing) {
  Laboratory laboratory(
      "{train.epochs: 0, train.steps: 14, train.evaluate: {every: 4, unit: minibatch}}");
  const DrainPoints drains = laboratory.plan().drains;
  EXPECT_EQ(drains.evaluations(0, 6), (std::vector{4}));
  EXPECT_EQ(drains.evaluations(6, 12), (std::vector{2})) << "12 is a drain point itself";
  EXPECT_EQ(drains.evaluations(12, 14), (std::vector<int>()));
  EXPECT_TRUE(drains.evaluates_at(12) && drains.evaluates_at(14) && !drains.evaluates_at(6));
  EXPECT_TRUE(drains.evaluates_within());
  EXPECT_FALSE(
      Laboratory("{train.evaluate: {every: 1, unit: epoch}}").plan().drains.evaluates_within());
  EXPECT_EQ(
      points("{train.epochs: 0, train.steps: 14, train.evaluate: {every: 4, unit: minibatch}}"),
      points("{train.epochs: 0, train.steps: 14}"));
}

TEST(DrainPoints, AreTheCheckpointsToo) {
  EXPECT_EQ(points("{train.epochs: 2, train.checkpoint: {every: 4, unit: minibatch}}"),
            (Points{-4, 6, -8, 12}))
      << "counted over the whole training; none at its end";
  EXPECT_EQ(points("{train.epochs: 2, train.checkpoint: {every: 9, unit: minibatch}}"),
            (Points{6, -9, 12}));
}

TEST(DrainPoints, WithoutDrainingAreOnlyTheCheckpointsThatAreAskedFor) {
  EXPECT_EQ(points("{train.epochs: 3, train.drain: never}"), (Points{18}));
  EXPECT_EQ(points("{train.epochs: 3, train.drain: never, train.checkpoint: {every: 1000}}"),
            (Points{18}));
  EXPECT_EQ(points("{train.epochs: 3, train.drain: never, train.checkpoint: {every: 2}}"),
            (Points{-12, 18}));
  EXPECT_EQ(
      points(
          "{train.epochs: 3, train.drain: never, train.checkpoint: {every: 7, unit: minibatch}}"),
      (Points{-7, -14, 18}));
}

TEST(DrainPoints, SaysWhereDrainNeverDrains) {
  auto remark = [](const std::string& changes) {
    return Laboratory(changes).plan().drains.remark();
  };
  EXPECT_EQ(remark("{train.epochs: 3, train.drain: never}"), "");
  EXPECT_EQ(remark("{train.epochs: 3, train.checkpoint: {every: 2}}"), "");
  EXPECT_NE(
      remark("{train.epochs: 3, train.drain: never, train.checkpoint: {every: 2}}").find("12"),
      std::string::npos);
}

TEST(DrainPoints, OfAnUndrainedTrainingAreWrittenOutSoThatItsFileRunsAlike) {
  const Laboratory never("{train.epochs: 3, train.drain: never}");
  EXPECT_EQ(never.experiment.resolved.find_path("train.checkpoint.every")->integer, 0);
  EXPECT_EQ(read_experiment(never.experiment.resolved).digest, never.experiment.digest);
}

}  // namespace
}  // namespace pipewright::test
