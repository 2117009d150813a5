/// The `plot` section of an experiment file: which learning curves stand in which picture.
#pragma once

#include <optional>
#include <vector>

#include "core/reports/table_spec.h"

namespace pipewright {

/// Curves of others beside ours: rows of a CSV file with one epoch each.
struct PlotPublished {
  TablePublished numbers;
  TableKey epoch;       ///< CSV column of the epoch
  int first_epoch = 1;  ///< how the file calls the first one
};

struct PlotSpec {
  std::vector<TableKey> pictures;  ///< each value of these keys its own picture; empty: one
  std::vector<TableKey> lines;     ///< each value of these keys its own line; empty: the label
  TableKey metric;                 ///< a column of epochs.csv
  std::filesystem::path hardware;  ///< whose modelled hours are drawn against; empty: epochs
  std::optional<PlotPublished> published;
};

/// Reads `document.plot` (all defaults without one). Throws Error{Experiment} with all problems.
PlotSpec read_plot_spec(const Value& document);

/// The options of the section, for the JSON Schema and help pages.
std::vector<OptionInfo> plot_options();

}  // namespace pipewright
