// SPDX-License-Identifier: Apache-2.0
#include "core/tables/mean_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace pipewright {
namespace {

constexpr std::size_t kFewest = 3;  // runs; an interval of two runs is too wide to tell anything

bool has_each_once(const std::vector<std::string>& seeds) {
  return std::set<std::string>(seeds.begin(), seeds.end()).size() == seeds.size();
}

struct Pairs {
  std::vector<double> a, b, differences;
};

/// The values of the seeds that are in both.
Pairs paired(const SeededValues& a, const SeededValues& b) {
  Pairs pairs;
  if (!has_each_once(a.seeds) || !has_each_once(b.seeds)) return pairs;
  std::map<std::string, double> of_b;
  for (std::size_t i = 0; i < b.seeds.size(); ++i) of_b.emplace(b.seeds[i], b.values[i]);
  for (std::size_t i = 0; i < a.seeds.size(); ++i)
    if (const auto other = of_b.find(a.seeds[i]); other != of_b.end()) {
      pairs.a.push_back(a.values[i]);
      pairs.b.push_back(other->second);
      pairs.differences.push_back(a.values[i] - other->second);
    }
  return pairs;
}

/// Euclid's algorithm: the largest number of which both are multiples, but for `rounding`.
double common_divisor(double a, double b, double rounding) {
  while (b > rounding) a = std::exchange(b, std::abs(std::remainder(a, b)));
  return a;
}

/// The largest step of which all values are multiples. That of the shares k/N of N samples is 1/N,
/// or a multiple of it. If the values have no common step, returns rounding noise.
double common_step(const std::vector<double>& values, double rounding) {
  double step = 0;
  for (const double value : values) step = common_divisor(std::abs(value), step, rounding);
  return step;
}

constexpr double kRounding = 1e-9;  // of the largest; a million samples lose 1e6 times 2^-53

/// What a share of samples can tell apart, as far as its values show it: their common step, or else
/// the smallest distance between different values.
double resolution_of(std::vector<double> values) {
  constexpr double kFinest = 1e-7;  // of the largest; no test set has ten million samples
  std::ranges::sort(values);
  const double largest = std::max(std::abs(values.front()), std::abs(values.back()));
  if (const double step = common_step(values, kRounding * largest); step > kFinest * largest)
    return step;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[i - 1]) smallest = std::min(smallest, values[i] - values[i - 1]);
  return smallest;
}

Comparison compared(const MeanDifference& difference, const std::vector<double>& a,
                    const std::vector<double>& b, bool of_shares) {
  Comparison comparison{.difference = difference,
                        .mean_a = moments_of(a).mean,
                        .mean_b = moments_of(b).mean,
                        .runs_a = a.size(),
                        .runs_b = b.size()};
  // Differences that are equal but for rounding are equal.
  const double largest = std::max(std::abs(comparison.mean_a), std::abs(comparison.mean_b));
  if (difference.standard_error > 1e-14 * largest) return comparison;
  comparison.constant = true;
  if (!of_shares) {
    comparison.resolution = a == b ? 0 : kRounding * largest;
    return comparison;
  }
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  comparison.resolution = resolution_of(std::move(all));
  return comparison;
}

}  // namespace

bool is_comparable(double value) {
  return std::abs(value) < 1e70;  // the square of a variance has the fourth power
}

double Moments::std() const {
  return std::sqrt(variance);
}

Moments moments_of(std::span<const double> values) {
  Moments m{.count = static_cast<double>(values.size()), .mean = kNoNumber, .variance = kNoNumber};
  if (values.empty()) return m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.) / m.count;
  if (values.size() < 2) return m;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  m.variance = squares / (m.count - 1);
  return m;
}

Interval Comparison::interval(double confidence) const {
  if (!constant) return interval_of(difference, confidence);
  return {difference.mean - resolution, difference.mean + resolution};
}

double Comparison::rounding() const {
  if (resolution == 0) return 0;
  return kRounding * std::max(std::abs(mean_a), std::abs(mean_b));
}

double Comparison::p() const {
  if (!constant) return two_sided_p(difference);
  return std::abs(difference.mean) <= resolution + rounding() ? 1 : 0;
}

double Comparison::p_of_margin(double margin) const {
  if (!constant) return equivalence_p(difference, margin);
  return std::abs(difference.mean) + resolution < margin - rounding() ? 0 : 1;
}

double Comparison::p_beyond(double margin) const {
  if (constant) return std::abs(difference.mean) - resolution > margin + rounding() ? 0 : 1;
  MeanDifference excess = difference;
  excess.mean = std::abs(difference.mean) - margin;
  return excess.mean > 0 ? two_sided_p(excess) : 1;
}

std::optional<Comparison> compare_means(const SeededValues& a, const SeededValues& b,
                                        bool of_shares) {
  if (Pairs pairs = paired(a, b); pairs.differences.size() >= kFewest) {
    Comparison comparison =
        compared(paired_difference(pairs.differences), pairs.a, pairs.b, of_shares);
    comparison.differences = std::move(pairs.differences);
    comparison.correlation = correlation(pairs.a, pairs.b);
    return comparison;
  }
  if (a.values.size() < kFewest || b.values.size() < kFewest) return std::nullopt;
  return compared(welch_difference(a.values, b.values), a.values, b.values, of_shares);
}

}  // namespace pipewright
