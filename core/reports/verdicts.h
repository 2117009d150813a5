// SPDX-License-Identifier: Apache-2.0
/// Verdicts: whether the runs show what an experiment's claims say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/reports/claims.h"
#include "core/reports/table.h"

namespace pipewright {

/// Means are compared by compare_means(). `less` is decided by the two-sided test of their
/// difference, `close` by two one-sided tests; p values are corrected by Holm's method over all
/// comparisons of all claims, at 5 %. `diverges` and `finishes` need three runs.
enum class Outcome : std::uint8_t {
  Held,     ///< less: a significant difference on the claimed side; close: significantly within
  NotHeld,  ///< less: a significant one on the other side; close: the 95 % interval is beyond
            ///< ±within
  NotShown  ///< anything else; also where runs of a comparison are not done, or fewer than three
};

struct Verdict {
  std::string say;
  Outcome outcome = Outcome::NotShown;
  std::string why;  ///< the comparisons with their numbers, separated by "; "
};

/// Judges the claims, on the table's epoch and, unless they name another, metric. Throws
/// Error{Experiment} with all problems: keys, values or metrics that no run has, groups without a
/// run, groups whose runs differ in more than their seed. Modelled metrics without hardware show
/// nothing.
std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& runs);

/// The verdicts as they stand below a table: a list of Markdown or LaTeX, or for CSV, which has no
/// place for it, plain lines. "" without claims.
std::string print_verdicts(const std::vector<Verdict>& verdicts, TableFormat format);

}  // namespace pipewright
