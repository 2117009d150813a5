// SPDX-License-Identifier: Apache-2.0
/// Statistics of few runs: tests of means by Student's t, exact tests of signs, equivalence,
/// proportions, and corrections for many comparisons at once. All functions are pure. Values must
/// be finite; a violation of a precondition throws Error{Bug}.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pipewright {

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// An estimated difference of means, and how Student's t judges it.
struct MeanDifference {
  double mean = 0;
  double standard_error = 0;
  double degrees = 1;  ///< of freedom; Welch's need not be a whole number
};

/// The mean of at least two paired differences.
MeanDifference paired_difference(std::span<const double> differences);
/// mean(a) − mean(b) of independent values, at least two each, with variances of their own
/// (Welch 1947, with Satterthwaite's degrees of freedom).
MeanDifference welch_difference(std::span<const double> a, std::span<const double> b);

/// The t that Student's distribution exceeds in magnitude with probability 1 − confidence.
double student_t(double confidence, double degrees);
/// The two-sided confidence interval, such as 0.95.
Interval interval_of(const MeanDifference& difference, double confidence);
/// The p of a difference at least as far from 0 on either side, if the true one is 0.
double two_sided_p(const MeanDifference& difference);
/// The p of two one-sided tests (Schuirmann 1987) that the true difference is at least `margin` in
/// magnitude. At 0.05 it decides as the 90 % interval does.
double equivalence_p(const MeanDifference& difference, double margin);

inline constexpr std::size_t kMostSigns = 40;
/// The exact two-sided p of the mean of paired differences under all 2ⁿ choices of their signs
/// (Fisher's randomisation test), for at most kMostSigns differences. Means that differ by rounding
/// alone count as equal.
double sign_flip_p(std::span<const double> differences);

/// Pearson's correlation of at least two pairs; kNoNumber where the values of a side are all equal.
double correlation(std::span<const double> a, std::span<const double> b);

/// Holm's (1979) adjusted p values, in the order given: rejecting those of at most α keeps the
/// probability of any false rejection at α or below.
std::vector<double> holm_adjusted(std::span<const double> p);

/// Clopper's and Pearson's (1934) exact interval of a proportion of which `hits` of `count` were
/// seen.
Interval proportion_interval(std::size_t hits, std::size_t count, double confidence);

/// The smallest difference that a two-sided paired t test at level `alpha` finds with probability
/// `power`, in standard deviations of the differences, for `count` pairs (at least 2).
double detectable_effect(std::size_t count, double alpha, double power);

}  // namespace pipewright
