// SPDX-License-Identifier: Apache-2.0
/// Verdicts: whether the runs show what an experiment's claims say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/reports/claims.h"
#include "core/reports/table.h"

namespace pipewright {

/// Means are compared by mean_difference(): the 95 % interval of their difference, paired by seed
/// where three seeds or more are in both, otherwise Welch's.
enum class Outcome : std::uint8_t {
  Held,     ///< less: the whole interval is on the claimed side of 0; close: it is within ±within
  NotHeld,  ///< less: the whole interval is on the other side; close: it is beyond ±within
  NotShown  ///< anything else; also where runs of a comparison are not done, or fewer than three
};

struct Verdict {
  std::string say;
  Outcome outcome = Outcome::NotShown;
  std::string why;  ///< the comparisons with their numbers, separated by "; "
};

/// Judges each claim by itself, on the table's epoch and, unless it names another, metric. Throws
/// Error{Experiment} with all problems: keys, values or metrics that no run has, groups whose runs
/// differ in more than their seed. Modelled metrics without hardware show nothing.
std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& runs);

/// The verdicts as they stand below a table: a list of Markdown or LaTeX, or for CSV, which has no
/// place for it, plain lines. "" without claims.
std::string print_verdicts(const std::vector<Verdict>& verdicts, TableFormat format);

}  // namespace pipewright
