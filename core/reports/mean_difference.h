// SPDX-License-Identifier: Apache-2.0
/// Confidence intervals (Student's t) that tell whether two means over runs differ by more than the
/// seeds explain.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// Results of runs and the seed of each. Unknown seeds are all the same text, such as "".
struct SeededValues {
  std::vector<double> values;
  std::vector<std::string> seeds;
};

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// The two-sided 95 % confidence interval of mean(a) − mean(b). If at least three seeds are in
/// both, and no seed occurs twice in either, it is the paired interval of the differences by seed;
/// otherwise it is Welch's, which needs three runs on both sides. nullopt with fewer runs.
std::optional<Interval> mean_difference(const SeededValues& a, const SeededValues& b);

/// The t with 95 % of Student's distribution between −t and t, for at least one degree of freedom.
/// Degrees that are not in its table are rounded down, which never shortens an interval.
double student_t95(double degrees_of_freedom);

}  // namespace pipewright
