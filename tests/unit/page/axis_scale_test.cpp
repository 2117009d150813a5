// SPDX-License-Identifier: Apache-2.0
// Ranges and ticks of axes.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/text.h"
#include "core/page/chart.h"

namespace pipewright {
namespace {

TEST(AxisScales, HoldAllValuesAndHaveRoundTicks) {
  const AxisScale scale = scale_of({12.5, 87.3, 40}, false);
  EXPECT_LT(scale.low, 12.5);
  EXPECT_GT(scale.high, 87.3);
  EXPECT_EQ(scale.ticks, (std::vector<double>{20, 40, 60, 80}));
}

TEST(AxisScales, BeginAtZeroWhereValuesAreNearIt) {
  EXPECT_EQ(scale_of({1, 100}, false).low, 0) << "4 % below 1 is below 0";
  EXPECT_LT(scale_of({-1, 100}, false).low, -1);
}

TEST(AxisScales, OfWholeNumbersHaveTicksAtWholeNumbers) {
  EXPECT_EQ(scale_of({1, 2, 3}, false).ticks, (std::vector<double>{1, 2, 3}));
}

TEST(AxisScales, OfOneValueHaveItInTheMiddle) {
  const AxisScale scale = scale_of({5, 5}, false);
  EXPECT_DOUBLE_EQ(scale.share(5), 0.5);
  EXPECT_DOUBLE_EQ(scale_of({0}, false).share(0), 0.5);
}

TEST(AxisScales, OfNothingAreThereAllTheSame) {
  EXPECT_FALSE(scale_of({}, false).ticks.empty());
  EXPECT_FALSE(scale_of({kNoNumber, HUGE_VAL}, true).ticks.empty());
}

TEST(AxisScales, OfLogarithmsHavePowersOfTen) {
  const AxisScale scale = scale_of({1e-4, 1}, true);
  EXPECT_EQ(scale.ticks.size(), 5u);
  for (const double tick : scale.ticks)
    EXPECT_NEAR(std::log10(tick), std::round(std::log10(tick)), 1e-12);
  EXPECT_NEAR(scale.share(1e-2), 0.5, 1e-9);  // the geometric mean of the ends
  EXPECT_GE(scale_of({3}, true).ticks.size(), 2u);
}

TEST(AxisScales, ValuesBeyondTheEndsStandAtThem) {
  const AxisScale scale = scale_of({0, 1}, false);
  EXPECT_EQ(scale.share(-5), 0);
  EXPECT_EQ(scale.share(5), 1);
  EXPECT_EQ(scale.share(kNoNumber), 0);
}

}  // namespace
}  // namespace pipewright
