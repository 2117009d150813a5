// SPDX-License-Identifier: Apache-2.0
/// Each cell of a table at its best value of a key, chosen on held-out training samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// The value of a key whose runs have the best mean of TableSpec::chosen_by on held-out samples.
struct BestValue {
  std::string value;
  std::vector<std::string> as_good;  ///< other values with the same mean
  std::string edge;                  ///< "the largest of 3 tried"; "" if it is no edge
  double mean = 0;                   ///< of TableSpec::chosen_by over the runs with this value
  std::size_t runs = 0;              ///< how many these are
};

struct BestChoice {
  std::vector<bool> shown;                     ///< for each run, whether its cell shows it
  std::vector<std::optional<BestValue>> best;  ///< for each group; none: no value is eligible
  /// All runs hold out samples, so that none has test results. The table then shows the held-out
  /// results by which the values were chosen.
  bool shows_held_out = false;
};

/// Whether a chosen number lies at the edge of those that were tried, so that a better one may lie
/// beyond it: "the smallest of 3 tried" or "the largest of 3 tried", where each distinct number
/// counts once. "" if it lies between others, if nothing else was tried, or if one is no number.
std::string tried_edge(const std::string& value, const std::vector<std::string>& tried);

/// Whether the run was evaluated on training samples held out (loader.validation) in the place of
/// test samples.
bool has_held_out(const RunRecord& run);

/// Chooses a value of the key TableSpec::best_over in each group of runs. There are `groups`
/// groups, and run i belongs to group[i].
///
/// A value is eligible if all its runs with held-out samples are done and have a finite metric, so
/// a value with which some run diverges is never chosen. The table shows the runs that have the
/// chosen value and test results or, if no run of the whole sweep has test results, those by which
/// it was chosen. Of a group without an eligible value it shows the runs that are not done. Records
/// a problem if no run holds out samples: a choice by test results would favour the group that has
/// the most values to choose from.
BestChoice choose_best(const TableSpec& spec, const std::vector<RunRecord>& runs,
                       const std::vector<std::size_t>& group, std::size_t groups,
                       Problems& problems);

}  // namespace pipewright
