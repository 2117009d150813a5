// SPDX-License-Identifier: Apache-2.0
/// The `plot` section of an experiment file: which learning curves are in which picture.
#pragma once

#include <optional>
#include <vector>

#include "core/reports/table_spec.h"

namespace pipewright {

/// Published curves beside ours: rows of a CSV file with one epoch each.
struct PlotPublished {
  TablePublished numbers;
  TableKey epoch;       ///< CSV column with the epoch
  int first_epoch = 1;  ///< number of the first epoch in the file
};

struct PlotSpec {
  std::vector<TableKey> pictures;  ///< one picture per combination of values; empty: one picture
  std::vector<TableKey> lines;     ///< one line per combination of values; empty: one per label
  TableKey metric;                 ///< a column of epochs.csv
  std::filesystem::path hardware;  ///< x-axis: modelled hours on it; empty: epochs
  std::optional<PlotPublished> published;
};

/// Reads `document.plot` (all defaults without one). Throws Error{Experiment} with all problems.
PlotSpec read_plot_spec(const Value& document);

/// The options of the section, for the JSON Schema and `describe`.
std::vector<OptionInfo> plot_options();

}  // namespace pipewright
