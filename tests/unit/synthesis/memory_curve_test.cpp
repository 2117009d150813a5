// SPDX-License-Identifier: Apache-2.0
// Memory against bubble.
#include "core/synthesis/memory_curve.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/synthesis/search_cases.h"

namespace pipewright {
namespace {

const SynthesisSettings kFewTries{.tries = 4000, .exact_steps = 4000};

TEST(MemoryCurve, HasTheBubbleThatTheWorkLeaves) {
  // 3 stages, 4 micro-batches, F = B = W = 1: 12 s of work; with room for n of them worker 0 waits
  // for 4 − (n − 1) s. It holds 100 B for each.
  std::vector<StageCost> costs = alike(3, 1, 1, 1);
  for (StageCost& cost : costs) cost.activation_bytes = 100;
  const std::vector<CurvePoint> curve =
      memory_curve(straight(3, 4, 24), costs, ideal_hardware(3), {}, kFewTries);
  ASSERT_GE(curve.size(), 4U);
  for (const CurvePoint& point : curve) {
    EXPECT_NEAR(point.bubble, 1 - 12 / point.seconds, 1e-12) << point.live;
    EXPECT_EQ(point.peak, 100 * point.live);
    if (point.live >= 3) {
      EXPECT_EQ(point.seconds, 12 + 4 - (point.live - 1));
    }
  }
  EXPECT_EQ(curve.front().live, 1);
  EXPECT_EQ(curve.back().live, 4);
}

TEST(MemoryCurve, ComparesEachRowWithWhatKeepsToItsLimits) {
  // The last row is as fast as a search without a limit, in which ZB-H2 is the fastest scheme, but
  // holds fewer forwards than that; of the second table its bound is higher, too.
  for (const auto& [stages, microbatches, seed] :
       {std::tuple(2, 4, std::uint64_t{14}), {3, 6, std::uint64_t{25}}}) {
    const std::vector<StageCost> costs = random_costs(stages, seed);
    const PipelineShape shape = straight(stages, microbatches, 24);
    const Hardware hardware = ideal_hardware(stages);
    for (const CurvePoint& point : memory_curve(shape, costs, hardware, {}, kFewTries)) {
      const SearchedSchedule alone = search_schedule(
          shape, costs, hardware, {.live = static_cast<double>(point.live)}, kFewTries);
      EXPECT_EQ(point.built_in, alone.built_in) << point.live;
      EXPECT_EQ(point.bound, alone.bound.seconds) << point.live;
      EXPECT_LE(point.seconds, alone.pace.seconds) << point.live;
    }
  }
}

TEST(MemoryCurve, IsFasterTheMoreMayBeHeldAndTheOlderWeightsMayBe) {
  const std::vector<CurvePoint> curve = memory_curve(
      straight(4, 2, 24), random_costs(4, 1), ideal_hardware(4), {.staleness = 2}, kFewTries);
  double slowest = 0;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const CurvePoint &before = curve[i - 1], &point = curve[i];
    if (point.staleness == before.staleness) {
      EXPECT_EQ(point.live, before.live + 1);
      EXPECT_LE(point.seconds, before.seconds);
    } else {
      EXPECT_EQ(point.staleness, before.staleness + 1);
      EXPECT_EQ(point.live, 1);
    }
    EXPECT_GE(point.seconds, point.bound * (1 - kSumRounding));
    slowest = std::max(slowest, point.seconds);
  }
  EXPECT_EQ(curve.back().staleness, 2);
  EXPECT_LT(curve.back().seconds, slowest);
}

TEST(MemoryCurve, IsWrittenAsCsvWithARowForEachPoint) {
  const CurvePoint point{.staleness = 1,
                         .live = 2,
                         .peak = 300,
                         .bubble = 0.25,
                         .seconds = 5,
                         .bound = 4,
                         .scope = "in turn",
                         .built_in = "gpipe",
                         .built_in_seconds = 6};
  EXPECT_EQ(curve_csv({point}),
            "staleness,live,peak_bytes,bubble,seconds,bound,gap,built_in,built_in_seconds,scope\n"
            "1,2,300,0.25,5,4,0.25,gpipe,6,in turn\n");
}

}  // namespace
}  // namespace pipewright
