// SPDX-License-Identifier: Apache-2.0
/// Accuracy against time: the metric of each cell of a table, and the time that the same training
/// would take on given hardware.
#pragma once

#include <string>
#include <vector>

#include "core/tables/table.h"

namespace pipewright {

struct TradeoffRow {
  std::string name;  ///< name of the table's cell
  double metric = 0, std = 0;
  std::size_t runs = 0;         ///< with the metric
  std::size_t diverged = 0;     ///< runs of the cell that diverged
  std::size_t failed = 0;       ///< runs beside them, so that the metric is none of all runs
  std::size_t not_reached = 0;  ///< runs among them that say so of steps_to and its kin
  /// Up to the end of the last epoch, the mean of runs that did not fail (NaN: all did): modelled
  /// hours or, in a report of runs that were not modelled, the seconds that they trained.
  double time = 0;
  double samples_per_second = 0;
  double bubble = 0;
  double worker_gib = 0;   ///< weights, gradients and optimizer state of the worker with most
  bool efficient = false;  ///< mark_efficient()
};

/// Marks the Pareto-optimal rows: no other is at least as good in metric and time, and better in
/// one. Times are the same within a thousandth. Rows with runs that failed are neither marked nor
/// beat others, because the mean of the runs that survived flatters; where these count, it is of
/// all. `smaller`: smaller metrics are better.
void mark_efficient(std::vector<TradeoffRow>& rows, bool smaller);

/// How many of a cell's runs diverged.
std::size_t diverged_runs(const TableCell& cell, const std::vector<RunRecord>& runs);
/// The number of a row's runs, with those beside them that failed: "3", "3, 1 diverged".
std::string runs_text(const TradeoffRow& row);

/// The cells that have runs with the metric, sorted by hours. The runs must have been modelled.
std::vector<TradeoffRow> make_tradeoff(const TableSpec& spec, const std::vector<RunRecord>& runs);

/// The rows as Markdown with a caption. Efficient rows, the Pareto set, are marked.
std::string print_tradeoff(const TableSpec& spec, const std::vector<TradeoffRow>& rows);

}  // namespace pipewright
