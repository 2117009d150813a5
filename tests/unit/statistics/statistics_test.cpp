// SPDX-License-Identifier: Apache-2.0
// Statistics of few runs, against densities integrated by Simpson's rule, sums over all outcomes
// and published tables.
#include "core/statistics/tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <tuple>
#include <vector>

#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

using Values = std::vector<double>;

double integral(const std::function<double(double)>& f, double from, double to) {
  constexpr int kSteps = 20'000;
  const double step = (to - from) / kSteps;
  double sum = f(from) + f(to);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(from + i * step);
  return sum * step / 3;
}

/// Student's distribution between −t and t.
double probability_within(double t, double degrees) {
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                       std::sqrt(degrees * std::numbers::pi);
  return 2 *
         integral(
             [&](double x) { return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2); }, 0,
             t);
}

TEST(Statistics, QuantilesHoldTheirShareOfStudentsDistribution) {
  for (const double degrees : {1., 2., 2.9, 4., 30., 120.5})
    for (const double confidence : {0.9, 0.95})
      EXPECT_NEAR(probability_within(student_t(confidence, degrees), degrees), confidence,
                  tolerance::kIntegral)
          << degrees;
}

TEST(Statistics, PAndIntervalSayTheSame) {
  const MeanDifference difference{1, 0.4, 3.7};
  const double p = two_sided_p(difference);
  EXPECT_NEAR(p, 1 - probability_within(1 / 0.4, 3.7), tolerance::kIntegral);
  EXPECT_NEAR(interval_of(difference, 1 - p).low, 0, tolerance::kIntegral);
  EXPECT_EQ(two_sided_p({-1, 0.4, 3.7}), p);
  EXPECT_EQ(two_sided_p({0, 0.4, 3.7}), 1);
}

TEST(Statistics, CorrelationIsTheCosineOfWhatDeviatesFromTheMeans) {
  // (1, 2, 6) deviates by (−2, −1, 3), and (2, 0, 4) by (0, −2, 2): 8 / √(14 · 8).
  EXPECT_NEAR(correlation(Values{1, 2, 6}, Values{2, 0, 4}), 8 / std::sqrt(112.),
              tolerance::kHundredOperations);
  EXPECT_NEAR(correlation(Values{1, 2, 6}, Values{-10, -20, -60}), -1,
              tolerance::kHundredOperations);
  EXPECT_TRUE(std::isnan(correlation(Values{0.1, 0.1, 0.1}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(correlation(Values{1, 2, 3}, Values{0.7, 0.7, 0.7})));
}

TEST(Statistics, EquivalenceIsDecidedByTheIntervalOf90Percent) {
  const MeanDifference difference{0.3, 0.2, 5};
  const double edge = interval_of(difference, 0.9).high;
  EXPECT_NEAR(equivalence_p(difference, edge), 0.05, tolerance::kIntegral);
  EXPECT_GT(equivalence_p(difference, 0.9 * edge), 0.05);
  EXPECT_LT(equivalence_p({-0.3, 0.2, 5}, 1.1 * edge), 0.05);
}

TEST(Statistics, WelchsDegreesAreThoseOfEqualVariancesAndOfTheSmallerGroup) {
  const MeanDifference equal = welch_difference(Values{1, 2, 3}, Values{11, 12, 13});
  EXPECT_EQ(equal.mean, -10);
  EXPECT_NEAR(equal.degrees, 4, tolerance::kHundredOperations);
  EXPECT_NEAR(equal.standard_error, std::sqrt(2. / 3), tolerance::kHundredOperations);
  EXPECT_NEAR(welch_difference(Values{1, 2, 3}, Values{5, 5, 5, 5}).degrees, 2,
              tolerance::kHundredOperations);
}

TEST(Statistics, SignFlipsAreCountedExactly) {
  EXPECT_EQ(sign_flip_p(Values{1, 2, 3}), 0.25);          // of 8 only +++ and −−−
  EXPECT_EQ(sign_flip_p(Values{1, 2, -3}), 1);            // the mean is 0
  EXPECT_EQ(sign_flip_p(Values{1, 1, 1, 1, 1}), 0.0625);  // the least that five can show
  EXPECT_EQ(sign_flip_p(Values{0.1, 0.2, -0.3, 3}),
            0.625);  // ±3 and 0.6, 0.4, 0.2, 0, 0
  // Equal differences, of which so many are negative: two tails of the binomial distribution.
  for (const int n : {7, 21, 28, 40})
    for (const int negative : {0, 1, 3}) {
      Values values(static_cast<std::size_t>(n), 1.5);
      std::fill_n(values.begin(), negative, -1.5);
      double tail = 0, choose = 1;
      for (int k = 0; k <= negative; ++k) {
        tail += choose;
        choose = choose * (n - k) / (k + 1);
      }
      EXPECT_DOUBLE_EQ(sign_flip_p(values), 2 * tail / std::exp2(n)) << n << " " << negative;
    }
}

TEST(Statistics, HolmKeepsTheOrderAndTheFirstFactor) {
  EXPECT_EQ(holm_adjusted(Values{0.01, 0.04, 0.03}), (Values{0.03, 0.06, 0.06}));
  EXPECT_EQ(holm_adjusted(Values{0.5, 0.9}), (Values{1, 1}));
  EXPECT_EQ(holm_adjusted(Values{}), Values{});
}

/// Clopper's and Pearson's bounds leave a tail of half the rest on each side.
TEST(Statistics, ProportionsAreExact) {
  const auto at_least = [](int k, int n, double p) {
    double sum = 0;
    for (int i = k; i <= n; ++i)
      sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1)) *
             std::pow(p, i) * std::pow(1 - p, n - i);
    return sum;
  };
  for (const auto& [k, n] : {std::pair{1, 5}, std::pair{3, 3}, std::pair{7, 10}}) {
    const Interval of =
        proportion_interval(static_cast<std::size_t>(k), static_cast<std::size_t>(n), 0.95);
    EXPECT_NEAR(at_least(k, n, of.low), 0.025, tolerance::kIntegral);
    if (k == n)
      EXPECT_EQ(of.high, 1);
    else
      EXPECT_NEAR(at_least(k + 1, n, of.high), 0.975, tolerance::kIntegral);
  }
  EXPECT_EQ(proportion_interval(0, 4, 0.95).low, 0);
}

/// The density of noncentral t as a mixture: (z + δ) / √(χ²/f) over the distribution of χ.
TEST(Statistics, DetectableEffectsHaveTheirPower) {
  for (const std::size_t count : {3u, 5u, 10u}) {
    const double n = static_cast<double>(count), f = n - 1;
    const double effect = detectable_effect(count, 0.05, 0.8), t = student_t(0.95, f);
    const auto normal_above = [](double x) { return std::erfc(x / std::numbers::sqrt2) / 2; };
    const double power = integral(
        [&](double chi) {
          const double density = std::exp((1 - f / 2) * std::log(2.) - std::lgamma(f / 2) +
                                          (f - 1) * std::log(chi) - chi * chi / 2);
          const double bound = t * chi / std::sqrt(f), shift = effect * std::sqrt(n);
          return density * (normal_above(bound - shift) + normal_above(bound + shift));
        },
        1e-12, 12);
    EXPECT_NEAR(power, 0.8, tolerance::kIntegral) << count;
  }
}

/// Figures that another program computed for a plan of experiments, each right to a unit of its
/// last digit.
TEST(Statistics, DetectableEffectsAreThoseOfAPublishedTable) {
  for (const auto& [count, alone, of_fifteen] :
       {std::tuple{5u, 1.68, 3.51}, {6u, 1.44, 2.69}, {8u, 1.16, 1.94}, {10u, 1.00, 1.58}}) {
    EXPECT_NEAR(detectable_effect(count, 0.05, 0.8), alone, 2 * tolerance::written(2));
    EXPECT_NEAR(detectable_effect(count, 0.05 / 15, 0.8), of_fifteen, 2 * tolerance::written(2));
  }
}

TEST(Statistics, DetectableEffectsAreNumbersForAsManyComparisonsAsThereMayBe) {
  for (const std::size_t count : {3u, 5u, 10u, 100u}) {
    double before = 0;
    for (const double comparisons : {1., 15., 1000., 10'000., 1e6}) {
      const double effect = detectable_effect(count, 0.05 / comparisons, 0.8);
      EXPECT_TRUE(std::isfinite(effect) && effect > before) << count << " " << comparisons;
      before = effect;
    }
  }
}

}  // namespace
}  // namespace pipewright
