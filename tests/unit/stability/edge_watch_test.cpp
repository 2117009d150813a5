// SPDX-License-Identifier: Apache-2.0
// A run warns when a stage has been past its edge for an epoch.
#include "core/stability/edge_watch.h"

#include <gtest/gtest.h>

namespace pipewright::test {
namespace {

/// Two stages of PipeDream with momentum 0.9; an epoch has 10 mini-batches.
EdgeWatch watch() {
  StabilityReport report;
  report.dynamics.rule.momentum = 0.9;
  report.stages = {{.delay = {.forward = 1, .backward = 1}, .rule = "none", .edge = 0.1},
                   {.delay = {.forward = 0, .backward = 0}, .rule = "none", .edge = 3.8}};
  return EdgeWatch(report, 10);
}

TEST(EdgeWatch, WarnsOnceAStageHasBeenPastItsEdgeForAnEpoch) {
  EdgeWatch edges = watch();
  edges.measured(0, 12, 0.01, 10);
  EXPECT_EQ(edges.warning(), "") << "one measurement may be a passing state";
  edges.measured(0, 9, 0.01, 15);
  edges.measured(0, 12, 0.01, 20);
  EXPECT_EQ(edges.warning(), "") << "it was below its edge in between";
  edges.measured(0, 14, 0.01, 30);
  const std::string warning = edges.warning();
  EXPECT_EQ(
      warning,
      "warning: stage 0 has exceeded its stability limit for one epoch: lr × sharpness = 0.14, "
      "limit 0.1 (delay 1, momentum 0.9). Values near the limit are normal; staying above it "
      "often leads to divergence");
  edges.measured(0, 15, 0.01, 40);
  EXPECT_EQ(edges.warning(), "") << "it has been said";
}

TEST(EdgeWatch, NamesTheStageThatIsFarthestPast) {
  EdgeWatch edges = watch();
  EXPECT_EQ(edges.farthest(), "");
  edges.measured(0, 9, 0.01, 10);
  EXPECT_EQ(edges.farthest(), "") << "none is past";
  edges.measured(0, 20, 0.01, 20);
  edges.measured(1, 400, 0.01, 20);
  EXPECT_EQ(edges.farthest().find("lr 0.01 × λ 20 = 0.2 is past stage 0's edge 0.1"), 0U);
}

}  // namespace
}  // namespace pipewright::test
