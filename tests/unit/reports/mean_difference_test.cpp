// SPDX-License-Identifier: Apache-2.0
#include "core/reports/mean_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// Student's distribution between −t and t, by Simpson's rule on its density.
double probability_within(double t, double degrees) {
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                       std::sqrt(degrees * std::numbers::pi);
  const auto density = [&](double x) {
    return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2);
  };
  constexpr int kSteps = 20'000;
  const double step = t / kSteps;
  double sum = density(0) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(i * step);
  return 2 * sum * step / 3;
}

TEST(MeanDifference, QuantilesHold95PercentOfStudentsDistribution) {
  for (int degrees = 1; degrees <= 30; ++degrees)
    EXPECT_NEAR(probability_within(student_t95(degrees), degrees), 0.95, tolerance::kQuantileTable)
        << degrees;
  for (const double degrees : {40., 60., 120., 1000.})
    EXPECT_NEAR(probability_within(student_t95(degrees), degrees), 0.95, tolerance::kQuantileTable)
        << degrees;
}

TEST(MeanDifference, DegreesInBetweenAreRoundedDown) {
  EXPECT_EQ(student_t95(4.9), student_t95(4));
  EXPECT_EQ(student_t95(59), student_t95(40));
}

TEST(MeanDifference, OfTheSameSeedsIsPaired) {
  // Seeds differ by 10, the two by 1: unpaired the difference would drown in the seeds.
  const auto interval =
      mean_difference({{10, 20, 30}, {"1", "2", "3"}}, {{31, 21.1, 10.9}, {"3", "2", "1"}});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, -1 - 4.3027 * 0.1 / std::sqrt(3), 10 * tolerance::kHundredOperations);
  EXPECT_NEAR(interval->high, -1 + 4.3027 * 0.1 / std::sqrt(3), 10 * tolerance::kHundredOperations);
}

TEST(MeanDifference, OfOtherSeedsIsWelchs) {
  const auto interval =
      mean_difference({{1, 2, 3}, {"1", "2", "3"}}, {{11, 12, 13}, {"4", "5", "6"}});
  ASSERT_TRUE(interval.has_value());  // equal variances of 1: 4 degrees of freedom
  EXPECT_NEAR(interval->low, -10 - 2.7764 * std::sqrt(2. / 3), 10 * tolerance::kHundredOperations);
  EXPECT_FALSE(interval->contains(0));
}

TEST(MeanDifference, SeedsThatOccurTwicePairNothing) {
  EXPECT_TRUE(
      mean_difference({{1, 9, 1, 9}, {"1", "2", "1", "2"}}, {{2, 10, 2, 10}, {"1", "2", "1", "2"}})
          ->contains(0));
}

TEST(MeanDifference, EqualResultsDifferByNothingAndConstantOnesByTheirDistance) {
  const SeededValues one{{0.5, 0.5, 0.5}, {"1", "2", "3"}}, other{{0.4, 0.4, 0.4}, {"1", "2", "3"}};
  EXPECT_TRUE(mean_difference(one, one)->contains(0));
  EXPECT_FALSE(mean_difference(one, other)->contains(0));
}

TEST(MeanDifference, OneOrTwoRunsTellNothing) {
  EXPECT_FALSE(mean_difference({{1, 2}, {"1", "2"}}, {{90, 91}, {"1", "2"}}).has_value());
  EXPECT_FALSE(mean_difference({{1}, {"1"}}, {{90, 91, 92}, {"1", "2", "3"}}).has_value());
}

}  // namespace
}  // namespace pipewright
