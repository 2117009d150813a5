// SPDX-License-Identifier: Apache-2.0
/// What the cells of a table differ from one of their rows or columns by.
#pragma once

#include <string>
#include <vector>

#include "core/reports/table.h"
#include "core/reports/verdicts.h"

namespace pipewright {

/// Compares each cell with that of the row whose name has `name` in the place of its own, or, where
/// columns have that name, with that of this column: the mean of the first minus that of the
/// second, paired by seed, as compare_groups() does. Cells without such a partner are left out.
/// Throws Error{Experiment} if there is no such name.
std::vector<ClaimTest> differences_from(const std::string& name, const Table& table,
                                        const std::vector<RunRecord>& runs);

/// The differences as they stand below a table, each with its answer in words: better, worse, no
/// difference shown, equal, or not compared. `name` and `metric` are those of the table.
std::string print_differences(const std::string& name, const std::string& metric,
                              const std::vector<ClaimTest>& differences, TableFormat format);

}  // namespace pipewright
