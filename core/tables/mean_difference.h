// SPDX-License-Identifier: Apache-2.0
/// Compares the means of two groups of runs, by pairs of runs with the same seed where there are
/// such, so that differences between seeds do not count as noise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/statistics/tests.h"

namespace pipewright {

/// Mean and standard deviation, computed in the same way for all tables and pictures.
struct Moments {
  double count = 0;
  double mean = 0;      ///< kNoNumber without values
  double variance = 0;  ///< sample variance (n − 1); kNoNumber with fewer than two values

  double std() const;
};

/// The moments of values, summed in the given order, so that the bits depend on nothing else.
Moments moments_of(std::span<const double> values);

/// Results of runs and the seed of each. Unknown seeds are all the same text, such as "".
struct SeededValues {
  std::vector<double> values;
  std::vector<std::string> seeds;
};

struct Comparison {
  MeanDifference difference;           ///< of mean_a − mean_b
  double mean_a = 0, mean_b = 0;       ///< of the runs that were compared
  std::size_t runs_a = 0, runs_b = 0;  ///< how many these are
  std::vector<double> differences;     ///< a − b by seed; empty if the groups are not paired
  double correlation = kNoNumber;      ///< of the pairs; unknown without pairs or their spread
  /// All differences are equal, so nothing shows how they spread. What the metric resolves takes
  /// the place of the standard error times t: the largest step of which all values are multiples,
  /// as accuracies of N samples are of 1/N, or the smallest distance between two values where they
  /// have no common step: infinite if all are 0. It is 0 where runs that differ by seed have
  /// pairwise the same value of a metric that is no share of samples: that is equality.
  bool constant = false;
  double resolution = 0;

  bool paired() const { return !differences.empty(); }
  /// The two-sided confidence interval of the difference, such as 0.95.
  Interval interval(double confidence) const;
  /// two_sided_p(), or 0 or 1 if the differences are constant.
  double p() const;
  /// equivalence_p(), or 0 or 1 if the differences are constant.
  double p_of_margin(double margin) const;
  /// The two-sided p of a difference as far beyond ±margin, if the true one is at most the margin
  /// in magnitude: at 0.05 it decides as the 95 % interval does. 0 or 1 if the differences are
  /// constant.
  double p_beyond(double margin) const;

 private:
  /// What rounding may make of a constant difference: one of a single step may be none, whatever
  /// its last bits are.
  double rounding() const;
};

/// Whether a value is finite and so small that squares of variances of such values are, too.
bool is_comparable(double value);

/// Compares values that are all is_comparable(). If at least three seeds are in both groups, and
/// none occurs twice in either, it compares the runs with these seeds, in pairs; otherwise all runs
/// by Welch's test, which needs three on both sides. nullopt with fewer. `of_shares`: the values
/// are shares of samples, such as accuracies, so that equal ones may hide a difference; others are
/// known but for rounding.
std::optional<Comparison> compare_means(const SeededValues& a, const SeededValues& b,
                                        bool of_shares = true);

}  // namespace pipewright
