// SPDX-License-Identifier: Apache-2.0
/// What the cells of a table differ from one of their rows or columns by.
#pragma once

#include <string>
#include <vector>

#include "core/tables/table.h"
#include "core/tables/verdicts.h"

namespace pipewright {

/// Compares each cell with its partner: the mean of the cell minus that of the partner, paired by
/// seed, as compare_groups() does. `name` is the value of a key of rows or columns, such as
/// "pipedream", or "KEY=VALUE", or the title of a column. The partner is the cell with that value
/// of the key and with the cell's own values of all other keys; a cell without a partner is left
/// out. Throws Error{Experiment} if no key has the value, or if several have it.
std::vector<ClaimTest> differences_from(const std::string& name, const Table& table,
                                        const std::vector<RunRecord>& runs);

/// The differences as they stand below a table, each with its answer in words: better, worse, no
/// difference shown, equal, or not compared. `name` and `metric` are those of the table.
std::string print_differences(const std::string& name, const std::string& metric,
                              const std::vector<ClaimTest>& differences, TableFormat format);

}  // namespace pipewright
