// SPDX-License-Identifier: Apache-2.0
// What must not matter to a comparison of runs does not: which group is called the first, the order
// of the runs, where a metric has its zero, and its unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/tables/mean_difference.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// Values with few bits, so that sums, differences and what is added to them are exact.
const SeededValues kOne{{1.5, 2.25, 4, 3.5, 2.75}, {"1", "2", "3", "4", "5"}};
const SeededValues kOther{{1.25, 3, 3.25, 3, 1.75}, {"1", "2", "3", "4", "5"}};
const SeededValues kStrangers{{1.25, 3, 3.25, 3}, {"6", "7", "8", "9"}};
const SeededValues kConstant{{0.5, 1.25, 3, 2.5, 1.75}, {"1", "2", "3", "4", "5"}};  // 1 less

/// Each with kOne: paired, by Welch, and paired with equal differences.
const std::vector<SeededValues> kGroups{kOther, kStrangers, kConstant};

constexpr double kMargin = 1.5;

SeededValues moved(SeededValues group, double factor, double added) {
  for (double& value : group.values) value = factor * value + added;
  return group;
}

SeededValues turned(SeededValues group) {
  std::ranges::reverse(group.values);
  std::ranges::reverse(group.seeds);
  return group;
}

TEST(ComparisonInvariance, TheOtherWayRoundHasTheOppositeSign) {
  for (const SeededValues& other : kGroups) {
    const auto there = compare_means(kOne, other), back = compare_means(other, kOne);
    ASSERT_TRUE(there && back);
    EXPECT_EQ(there->difference.mean, -back->difference.mean);
    EXPECT_EQ(there->mean_a, back->mean_b);
    EXPECT_EQ(there->mean_b, back->mean_a);
    EXPECT_EQ(there->runs_a, back->runs_b);
    for (const double confidence : {0.9, 0.95}) {
      EXPECT_EQ(there->interval(confidence).low, -back->interval(confidence).high);
      EXPECT_EQ(there->interval(confidence).high, -back->interval(confidence).low);
    }
    EXPECT_EQ(there->p(), back->p());
    EXPECT_EQ(there->p_of_margin(kMargin), back->p_of_margin(kMargin));
  }
}

TEST(ComparisonInvariance, TheOrderOfRunsDoesNotMatter) {
  for (const SeededValues& other : kGroups) {
    const auto plain = compare_means(kOne, other);
    for (const auto& again :
         {compare_means(turned(kOne), other), compare_means(kOne, turned(other)),
          compare_means(turned(kOne), turned(other))}) {
      ASSERT_TRUE(plain && again);
      EXPECT_EQ(plain->paired(), again->paired());
      EXPECT_NEAR(plain->difference.mean, again->difference.mean, tolerance::kHundredOperations);
      EXPECT_NEAR(plain->interval(0.95).low, again->interval(0.95).low,
                  10 * tolerance::kHundredOperations);
      EXPECT_NEAR(plain->p(), again->p(), tolerance::kHundredOperations);
    }
  }
}

TEST(ComparisonInvariance, AMetricWithAnotherZeroHasTheSameDifference) {
  for (const SeededValues& other : kGroups) {
    const auto plain = compare_means(kOne, other);
    const auto shifted = compare_means(moved(kOne, 1, 16), moved(other, 1, 16));
    ASSERT_TRUE(plain && shifted);
    // Means of numbers up to 20 are off by a few of their last bits.
    EXPECT_NEAR(shifted->mean_a - 16, plain->mean_a, 20 * tolerance::kFewOperations);
    EXPECT_NEAR(shifted->interval(0.95).low, plain->interval(0.95).low,
                100 * tolerance::kHundredOperations);
    EXPECT_NEAR(shifted->interval(0.95).high, plain->interval(0.95).high,
                100 * tolerance::kHundredOperations);
    EXPECT_NEAR(shifted->p(), plain->p(), 100 * tolerance::kHundredOperations);
    EXPECT_NEAR(shifted->p_of_margin(kMargin), plain->p_of_margin(kMargin),
                100 * tolerance::kHundredOperations);
  }
}

TEST(ComparisonInvariance, AMetricInAnotherUnitHasItsIntervalInThatUnit) {
  for (const SeededValues& other : kGroups) {
    const auto plain = compare_means(kOne, other);
    for (const double factor : {4.0, 0.125, -2.0}) {
      const auto scaled = compare_means(moved(kOne, factor, 0), moved(other, factor, 0));
      ASSERT_TRUE(plain && scaled);
      Interval expected = plain->interval(0.95);
      if (factor < 0) std::swap(expected.low, expected.high);
      EXPECT_EQ(scaled->interval(0.95).low, factor * expected.low);
      EXPECT_EQ(scaled->interval(0.95).high, factor * expected.high);
      EXPECT_EQ(scaled->p(), plain->p());
      EXPECT_EQ(scaled->p_of_margin(std::abs(factor) * kMargin), plain->p_of_margin(kMargin));
    }
  }
}

TEST(ComparisonInvariance, MomentsMoveAndScaleWithTheirValues) {
  const Moments plain = moments_of(kOne.values);
  const Moments scaled = moments_of(moved(kOne, -4, 0).values);
  EXPECT_EQ(scaled.mean, -4 * plain.mean);
  EXPECT_EQ(scaled.variance, 16 * plain.variance);
  EXPECT_EQ(scaled.std(), 4 * plain.std());
  const Moments shifted = moments_of(moved(kOne, 1, 16).values);
  EXPECT_NEAR(shifted.mean, plain.mean + 16, 20 * tolerance::kFewOperations);
  EXPECT_NEAR(shifted.variance, plain.variance, 100 * tolerance::kHundredOperations);
}

}  // namespace
}  // namespace pipewright
