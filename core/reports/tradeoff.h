// SPDX-License-Identifier: Apache-2.0
/// Accuracy against time: the metric of each cell of a table, and the time that the same training
/// would take on given hardware.
#pragma once

#include <string>
#include <vector>

#include "core/reports/table.h"

namespace pipewright {

struct TradeoffRow {
  std::string name;  ///< name of the table's cell
  double metric = 0, std = 0;
  std::size_t runs = 0;
  double hours = 0;  ///< modelled time up to the end of the last epoch
  double samples_per_second = 0;
  double bubble = 0;
  double worker_gib = 0;   ///< weights, gradients and optimizer state of the worker with most
  bool efficient = false;  ///< Pareto-optimal: no row is at least as good in both, better in one
};

/// The cells that have runs with the metric, sorted by hours. The runs must have been modelled.
std::vector<TradeoffRow> make_tradeoff(const TableSpec& spec, const std::vector<RunRecord>& runs);

/// The rows as Markdown with a caption. Efficient rows, the Pareto set, are marked.
std::string print_tradeoff(const TableSpec& spec, const std::vector<TradeoffRow>& rows);

}  // namespace pipewright
