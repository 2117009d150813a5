/// Accuracy against time: what each row and column of a table reached, and how long the same
/// training would take on given hardware.
#pragma once

#include <string>
#include <vector>

#include "core/reports/table.h"

namespace pipewright {

struct TradeoffRow {
  std::string name;  ///< of the table's cell
  double metric = 0, std = 0;
  std::size_t runs = 0;
  double hours = 0;  ///< modelled, to the end of the last epoch
  double samples_per_second = 0;
  double bubble = 0;
  double worker_gib = 0;   ///< weights, gradients, optimizer of the worker that has most
  bool efficient = false;  ///< no other row is as good and as fast, and better in one of both
};

/// The cells that have runs with the metric, by hours. The runs must have been modelled.
std::vector<TradeoffRow> make_tradeoff(const TableSpec& spec, const std::vector<RunRecord>& runs);

/// As Markdown with a caption; efficient rows, the Pareto set, are marked.
std::string print_tradeoff(const TableSpec& spec, const std::vector<TradeoffRow>& rows);

}  // namespace pipewright
