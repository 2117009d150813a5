// SPDX-License-Identifier: Apache-2.0
/// Each cell of a table at its best value of a key, chosen on held-out training samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/reports/table_spec.h"

namespace pipewright {

/// The value of a key with the best mean of what was measured on held-out samples.
struct BestValue {
  std::string value;
  std::vector<std::string> as_good;  ///< values with the same mean
  double mean = 0;                   ///< of the metric it was chosen by, over `runs`
  std::size_t runs = 0;
};

struct BestChoice {
  std::vector<bool> shown;                     ///< for each run, whether its cell shows it
  std::vector<std::optional<BestValue>> best;  ///< for each group; none: no value can be chosen
  bool shows_held_out = false;  ///< no run has test results: what is shown is what chose
};

/// Whether the run was evaluated on training samples held out (loader.validation) in the place of
/// test samples.
bool has_held_out(const RunRecord& run);

/// Chooses for each of `groups` groups, of which `group` has that of each run, the value of
/// TableSpec::best_over. A value is eligible if all its runs with held-out samples are done and
/// have a finite metric, so that none that diverges in some runs is chosen. Shown are the runs with
/// test results that have the value, or, if there are none in the whole sweep, those that chose;
/// of a group in which nothing can be chosen, what is not done. Records a problem if no run has
/// held-out samples: a choice by test results would favour what has most values to choose from.
BestChoice choose_best(const TableSpec& spec, const std::vector<RunRecord>& runs,
                       const std::vector<std::size_t>& group, std::size_t groups,
                       Problems& problems);

}  // namespace pipewright
