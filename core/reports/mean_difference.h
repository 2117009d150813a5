/// Whether two means over runs differ by more than the seeds explain: Student's intervals.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// Results of runs, and the seed of each; seeds that are not known are "" or alike.
struct SeededValues {
  std::vector<double> values;
  std::vector<std::string> seeds;
};

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// The two-sided 95 % confidence interval of mean(a) − mean(b). Where three or more seeds are in
/// both, once each, it is that of the differences by seed (paired); else Welch's, which needs three
/// runs on both sides. With fewer nothing can be told: nullopt.
std::optional<Interval> mean_difference(const SeededValues& a, const SeededValues& b);

/// The t with 95 % of Student's distribution between −t and t, for at least one degree of freedom.
/// Degrees that are not in its table are rounded down, which makes intervals no shorter.
double student_t95(double degrees_of_freedom);

}  // namespace pipewright
