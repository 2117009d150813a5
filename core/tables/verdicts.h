// SPDX-License-Identifier: Apache-2.0
/// Verdicts: whether the runs show what an experiment's claims say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics/tests.h"
#include "core/tables/claims.h"
#include "core/tables/mean_difference.h"
#include "core/tables/table.h"

namespace pipewright {

/// Means are compared by compare_means(). `less` is decided by the two-sided test of their
/// difference, `close` by two one-sided tests; p values are corrected by Holm's method over all
/// comparisons of all claims, at 5 %. Conditions on how runs end need three runs.
enum class Outcome : std::uint8_t {
  Held,     ///< less: a significant difference on the claimed side; close: significantly within
  NotHeld,  ///< less: a significant one on the other side; close: significantly beyond ±within
  NotShown  ///< anything else; also where runs of a comparison are not done, or fewer than three
};

/// The findings on one condition of a claim. Numbers are in the metric's own unit (accuracies are
/// shares); kNoNumber stands for one that is not known.
struct ClaimTest {
  std::string kind;    ///< the condition: less, close, diverges …, or against of compare_groups()
  std::string metric;  ///< what was compared; "" of conditions on how runs end
  std::string of;      ///< name of the group of which `minus` is subtracted, or of the only one
  std::string minus;
  Outcome outcome = Outcome::NotShown;
  std::string why;        ///< the numbers in a sentence, or why they are not known
  bool compared = false;  ///< all runs were there, so that the numbers below are known
  bool paired = false;
  /// Of steps_to and its kin: logarithms were compared, `effect`, its interval and the detectable
  /// ones are ratios, means are geometric, and `within` is a share.
  bool ratio = false;
  std::size_t runs_of = 0, runs_minus = 0;    ///< that were compared; of how runs end: all
  std::size_t alone_of = 0, alone_minus = 0;  ///< runs without a partner, where runs are paired
  std::size_t hits = 0;                       ///< runs that end as claimed
  double mean_of = kNoNumber, mean_minus = kNoNumber, effect = kNoNumber;
  Interval interval{kNoNumber, kNoNumber};  ///< of the effect, or of the share of all such runs
  std::string interval_kind;      ///< "paired t", "Welch t", "resolution", "Clopper-Pearson"
  double resolution = kNoNumber;  ///< what differences that are all equal can tell apart
  double confidence = kNoNumber;
  double deviation = kNoNumber;  ///< sample standard deviation of the paired differences
  double correlation = kNoNumber;
  std::size_t wins = 0, ties = 0, losses = 0;  ///< pairs in which `of` has more, as much, less
  double within = kNoNumber;                   ///< the margin of close
  double floor = kNoNumber;                    ///< of learns and learns_nothing
  /// For less, two-sided t. For close, two one-sided t tests that the effect is within the margin,
  /// or, where it is not, the two-sided t test of its distance beyond it.
  double p = kNoNumber;
  double p_adjusted = kNoNumber;  ///< by Holm's method over all comparisons of all claims
  double p_signs = kNoNumber;     ///< exact, of at most 40 pairs
  /// The effect that a two-sided paired t test finds with a probability of 80 %, at 5 %, and at 5 %
  /// divided by the number of all comparisons.
  double detectable = kNoNumber, detectable_adjusted = kNoNumber;
};

/// The runs of a group, and what they measured.
struct MeasuredGroup {
  std::string name;
  int runs = 0, done = 0, diverged = 0, failed = 0;  ///< those that diverged have failed, too
  bool failed_count = false;       ///< runs that failed have a value (TableSpec::failed_as)
  std::vector<std::string> mixed;  ///< keys other than the seed in which they differ
  SeededValues measured;           ///< the metric of those that have it
  bool averages = false;           ///< of groups, with a value for each seed that all of them have
};

/// Compares mean(first) − mean(second) of each pair, as `less` compares two groups, with Holm's
/// correction over all pairs. Held: it is significantly positive; NotHeld: negative. Groups whose
/// runs differ in more than their seed are not compared.
std::vector<ClaimTest> compare_groups(
    const std::vector<std::pair<MeasuredGroup, MeasuredGroup>>& pairs, const std::string& metric);

struct Verdict {
  std::string say;
  Outcome outcome = Outcome::NotShown;
  std::string why;               ///< the comparisons with their numbers, separated by "; "
  std::vector<ClaimTest> tests;  ///< each of them
};

/// "held", "not held" or "not shown"
const char* words_of(Outcome outcome);

/// A comparison's sentence with p by Holm's method, in place of another one where it has one.
std::string with_holm(const std::string& sentence, double p);

/// Judges the claims, on the table's epoch and, unless they name another, metric. Throws
/// Error{Experiment} with all problems: keys, values or metrics that no run has, groups without a
/// run, groups whose runs differ in more than their seed, or in which a seed is twice. Modelled
/// metrics without hardware show nothing.
std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& runs);

/// The verdicts as they stand below a table: a list of Markdown or LaTeX, or for CSV, which has no
/// place for it, plain lines. "" without claims.
std::string print_verdicts(const std::vector<Verdict>& verdicts, TableFormat format);

}  // namespace pipewright
