// SPDX-License-Identifier: Apache-2.0
#include "core/statistics/tests.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

using boost::math::complement;
using Student = boost::math::students_t_distribution<double>;

struct Sample {
  double count = 0, mean = 0, variance = 0;
};

Sample sample_of(std::span<const double> values) {
  PIPEWRIGHT_CHECK(values.size() >= 2, values.size());
  Sample of{.count = static_cast<double>(values.size())};
  of.mean = std::accumulate(values.begin(), values.end(), 0.) / of.count;
  for (const double value : values) of.variance += (value - of.mean) * (value - of.mean);
  of.variance /= of.count - 1;
  PIPEWRIGHT_CHECK(std::isfinite(of.variance), of.variance);
  return of;
}

/// The probability that Student's t exceeds (mean − from) / standard error.
double upper_tail(const MeanDifference& difference, double from) {
  const double distance = difference.mean - from;
  if (difference.standard_error == 0) return distance > 0 ? 0 : 1;
  return cdf(complement(Student(difference.degrees), distance / difference.standard_error));
}

/// The sums of the differences under all choices of their signs, ascending.
std::vector<double> signed_sums(std::span<const double> differences) {
  std::vector<double> sums{0};
  for (const double difference : differences) {
    const std::size_t before = sums.size();
    for (std::size_t i = 0; i < before; ++i) {
      sums.push_back(sums[i] + difference);
      sums[i] -= difference;
    }
  }
  std::ranges::sort(sums);
  return sums;
}

}  // namespace

MeanDifference paired_difference(std::span<const double> differences) {
  const Sample all = sample_of(differences);
  return {all.mean, std::sqrt(all.variance / all.count), all.count - 1};
}

MeanDifference welch_difference(std::span<const double> a, std::span<const double> b) {
  const Sample x = sample_of(a), y = sample_of(b);
  const double of_x = x.variance / x.count, of_y = y.variance / y.count, sum = of_x + of_y;
  MeanDifference difference{x.mean - y.mean, std::sqrt(sum), x.count + y.count - 2};
  if (sum > 0)
    difference.degrees = sum * sum / (of_x * of_x / (x.count - 1) + of_y * of_y / (y.count - 1));
  return difference;
}

double student_t(double confidence, double degrees) {
  PIPEWRIGHT_CHECK(degrees > 0, degrees);
  return quantile(complement(Student(degrees), (1 - confidence) / 2));
}

Interval interval_of(const MeanDifference& difference, double confidence) {
  const double reach = difference.standard_error == 0
                           ? 0
                           : student_t(confidence, difference.degrees) * difference.standard_error;
  return {difference.mean - reach, difference.mean + reach};
}

double two_sided_p(const MeanDifference& difference) {
  if (difference.mean == 0) return 1;
  MeanDifference positive = difference;
  positive.mean = std::abs(difference.mean);
  return 2 * upper_tail(positive, 0);
}

double equivalence_p(const MeanDifference& difference, double margin) {
  MeanDifference mirrored = difference;
  mirrored.mean = -difference.mean;
  return std::max(upper_tail(difference, -margin), upper_tail(mirrored, -margin));
}

double sign_flip_p(std::span<const double> differences) {
  PIPEWRIGHT_CHECK(!differences.empty() && differences.size() <= kMostSigns, differences.size());
  double observed = 0, magnitudes = 0;
  for (const double difference : differences) {
    observed += difference;
    magnitudes += std::abs(difference);
  }
  const double rounding = 1e-12 * magnitudes;  // far above that of 40 additions
  const double far = std::abs(observed) - rounding;
  if (far <= 0) return 1;
  // Every sum is one of the first half's and one of the second half's.
  const std::size_t half = differences.size() / 2;
  const std::vector<double> ones = signed_sums(differences.first(half)),
                            others = signed_sums(differences.subspan(half));
  double as_far = 0;
  for (const double one : ones) {
    as_far += static_cast<double>(others.end() - std::ranges::lower_bound(others, far - one));
    as_far += static_cast<double>(std::ranges::upper_bound(others, -far - one) - others.begin());
  }
  return as_far / std::exp2(differences.size());
}

double correlation(std::span<const double> a, std::span<const double> b) {
  PIPEWRIGHT_CHECK(a.size() == b.size(), a.size(), b.size());
  const Sample x = sample_of(a), y = sample_of(b);
  // The mean of equal values may round to another, and the variance to more than 0.
  for (const auto side : {a, b})
    if (std::ranges::min(side) == std::ranges::max(side)) return kNoNumber;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - x.mean) * (b[i] - y.mean);
  return std::clamp(sum / (x.count - 1) / std::sqrt(x.variance) / std::sqrt(y.variance), -1., 1.);
}

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double factor = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1., factor * p[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

Interval proportion_interval(std::size_t hits, std::size_t count, double confidence) {
  PIPEWRIGHT_CHECK(count > 0 && hits <= count, hits, count);
  const double k = static_cast<double>(hits), n = static_cast<double>(count);
  const double tail = (1 - confidence) / 2;
  using Beta = boost::math::beta_distribution<double>;
  return {hits == 0 ? 0 : quantile(Beta(k, n - k + 1), tail),
          hits == count ? 1 : quantile(complement(Beta(k + 1, n - k), tail))};
}

double detectable_effect(std::size_t count, double alpha, double power) {
  PIPEWRIGHT_CHECK(count >= 2, count);
  const double root = std::sqrt(static_cast<double>(count));
  const double degrees = static_cast<double>(count) - 1, t = student_t(1 - alpha, degrees);
  const auto lacking = [&](double effect) {
    const boost::math::non_central_t_distribution<double> found(degrees, effect * root);
    return cdf(complement(found, t)) + cdf(found, -t) - power;
  };
  double high = 1;
  while (lacking(high) < 0) high *= 2;
  std::uintmax_t steps = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(
      lacking, 1e-9, high, boost::math::tools::eps_tolerance<double>(48), steps);
  return (below + above) / 2;
}

}  // namespace pipewright
