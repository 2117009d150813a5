// SPDX-License-Identifier: Apache-2.0
#include "core/tables/mean_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

constexpr double kTwo = 4.302652729749462,
                 kFour = 2.776445105197799;  // t of so many degrees, SciPy

TEST(MeanDifference, OfTheSameSeedsIsPaired) {
  // Seeds differ by 10, the two by 1: unpaired the difference would drown in the seeds.
  const auto compared =
      compare_means({{10, 20, 30}, {"1", "2", "3"}}, {{31, 21.1, 10.9}, {"3", "2", "1"}});
  ASSERT_TRUE(compared && compared->paired());
  const auto [low, high] = compared->interval(0.95);
  EXPECT_NEAR(low, -1 - kTwo * 0.1 / std::sqrt(3), 10 * tolerance::kHundredOperations);
  EXPECT_NEAR(high, -1 + kTwo * 0.1 / std::sqrt(3), 10 * tolerance::kHundredOperations);
}

TEST(MeanDifference, HasTheMeansOfTheRunsThatWereCompared) {
  const auto compared = compare_means({{1, 2, 4, 100, 100, 100}, {"1", "2", "3", "4", "5", "6"}},
                                      {{1, 1, 1}, {"1", "2", "3"}});
  ASSERT_TRUE(compared && compared->paired());
  EXPECT_EQ(compared->runs_a, 3u);
  EXPECT_NEAR(compared->mean_a, 7. / 3, tolerance::kHundredOperations);
  EXPECT_NEAR(compared->mean_a - compared->mean_b, compared->difference.mean,
              tolerance::kHundredOperations);
}

TEST(MeanDifference, OfOtherSeedsIsWelchs) {
  const auto compared =
      compare_means({{1, 2, 3}, {"1", "2", "3"}}, {{11, 12, 13}, {"4", "5", "6"}});
  ASSERT_TRUE(compared && !compared->paired());  // equal variances of 1: 4 degrees of freedom
  EXPECT_NEAR(compared->interval(0.95).low, -10 - kFour * std::sqrt(2. / 3),
              10 * tolerance::kHundredOperations);
  EXPECT_FALSE(compared->interval(0.95).contains(0));
}

/// With two degrees of freedom the two-sided p of t is 1 − t / √(t² + 2).
TEST(MeanDifference, LiesBeyondAMarginWhereItsExcessIsSignificant) {
  const std::vector<std::string> seeds{"1", "2", "3"};
  const auto compared = compare_means({{10, 20, 30}, seeds}, {{12, 22.1, 31.9}, seeds});
  ASSERT_TRUE(compared && compared->paired());  // differences of −2, −2.1 and −1.9
  const double t = (2 - 1.5) / (0.1 / std::sqrt(3));
  EXPECT_NEAR(compared->p_beyond(1.5), 1 - t / std::sqrt(t * t + 2), tolerance::kIntegral);
  EXPECT_EQ(compared->p_beyond(2.5), 1);
  const auto equal = compare_means({{0.5, 0.7, 0.6}, seeds}, {{0.1, 0.3, 0.2}, seeds});
  EXPECT_EQ(equal->p_beyond(0.2), 0);  // accuracies are multiples of a tenth: 0.3 … 0.5
  EXPECT_EQ(equal->p_beyond(0.35), 1);
}

TEST(MeanDifference, SeedsThatOccurTwicePairNothing) {
  EXPECT_FALSE(
      compare_means({{1, 9, 1, 9}, {"1", "2", "1", "2"}}, {{2, 10, 2, 10}, {"1", "2", "1", "2"}})
          ->paired());
}

/// Ten test samples: no accuracy is nearer to another than a tenth.
TEST(MeanDifference, EqualDifferencesAreKnownToWhatTheMetricResolves) {
  const std::vector<std::string> seeds{"1", "2", "3"};
  const auto equal = compare_means({{0.1, 0.3, 0.2}, seeds}, {{0.1, 0.3, 0.2}, seeds});
  EXPECT_TRUE(equal->constant);
  EXPECT_NEAR(equal->interval(0.95).high, 0.1, tolerance::kHundredOperations);
  EXPECT_EQ(equal->p_of_margin(0.001), 1);
  EXPECT_EQ(equal->p_of_margin(0.2), 0);
  EXPECT_EQ(equal->p(), 1);
  const auto losses = compare_means({{0.1, 0.3, 0.2}, seeds}, {{0.1, 0.3, 0.2}, seeds}, false);
  EXPECT_EQ(losses->p_of_margin(1e-9), 0) << "equal bits of a loss are equality";
  const auto paces = compare_means({{80, 80, 80}, seeds}, {{48.5, 48.5, 48.5}, seeds}, false);
  EXPECT_EQ(paces->p(), 0) << "a modelled pace is exact, and two of them show no step";
  const auto rounded =
      compare_means({{0.3, 0.3, 0.3}, seeds}, {{0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2}, seeds}, false);
  EXPECT_EQ(rounded->p(), 1);
  const auto apart = compare_means({{0.1, 0.3, 0.2}, seeds}, {{0.6, 0.8, 0.7}, seeds});
  EXPECT_TRUE(apart->constant);
  EXPECT_EQ(apart->p(), 0);
  const auto one_value = compare_means({{0.5, 0.5, 0.5}, seeds}, {{0.5, 0.5, 0.5}, seeds});
  EXPECT_EQ(one_value->resolution, 0.5) << "that of two samples; nothing shows that there are more";
  const auto nothing = compare_means({{0, 0, 0}, seeds}, {{0, 0, 0}, seeds});
  EXPECT_EQ(nothing->resolution, std::numeric_limits<double>::infinity());
  EXPECT_EQ(nothing->p_of_margin(1e300), 1);
}

/// Accuracies of few seeds lie far apart, but all are multiples of 1/N.
TEST(MeanDifference, SharesOfSamplesAreKnownToOneSample) {
  const std::vector<std::string> seeds{"1", "2", "3"};
  for (const double samples : {7.0, 277.0, 10000.0, 872.0, 999983.0}) {
    const std::vector<double> shares{1 / samples * 2, 5 / samples, (samples - 1) / samples};
    const auto equal = compare_means({shares, seeds}, {shares, seeds});
    ASSERT_TRUE(equal->constant);
    EXPECT_NEAR(equal->resolution, 1 / samples, 1e-9) << samples;
    EXPECT_EQ(equal->p_of_margin(2 / samples), 0) << samples;
    EXPECT_EQ(equal->p_of_margin(0.5 / samples), 1) << samples;
  }
  const std::vector<double> irrational{std::sqrt(0.1), std::sqrt(0.2), std::sqrt(0.3)};
  const auto scores = compare_means({irrational, seeds}, {irrational, seeds});
  EXPECT_EQ(scores->resolution, irrational[2] - irrational[1]) << "no step is common to them";
}

/// A difference of one sample may be none, and one of two samples is one, whatever the last bits.
TEST(MeanDifference, OfOneSampleIsNoneWhateverRoundingDoes) {
  const std::vector<std::string> seeds{"1", "2", "3"};
  for (const int samples : {100, 277, 1000, 10000, 999983})
    for (int i = 0; i < 40; ++i) {
      const auto shares = [&](int more) {
        std::vector<double> all;
        for (const int part : {40 + i, 47 + i, 60 - i})
          all.push_back(static_cast<double>(part + more) / samples);
        return all;
      };
      for (const int step : {1, -1})
        EXPECT_EQ(compare_means({shares(0), seeds}, {shares(step), seeds})->p(), 1)
            << samples << " " << i;
      if (i == 20) continue;  // 60, 67 and 40 of 100 samples, less two, are even: the step is two
      EXPECT_EQ(compare_means({shares(0), seeds}, {shares(3), seeds})->p(), 0)
          << samples << " " << i;
    }
}

TEST(MeanDifference, OneOrTwoRunsTellNothing) {
  EXPECT_FALSE(compare_means({{1, 2}, {"1", "2"}}, {{90, 91}, {"1", "2"}}).has_value());
  EXPECT_FALSE(compare_means({{1}, {"1"}}, {{90, 91, 92}, {"1", "2", "3"}}).has_value());
}

}  // namespace
}  // namespace pipewright
