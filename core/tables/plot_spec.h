// SPDX-License-Identifier: Apache-2.0
/// The `plot` section of an experiment file: what is drawn over what, in which picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// Published curves beside ours: rows of a CSV file with one epoch each.
struct PlotPublished {
  TablePublished numbers;
  TableKey epoch;       ///< CSV column with the epoch
  int first_epoch = 1;  ///< number of the first epoch in the file
};

/// A curve of a CSV file drawn over each picture, such as a predicted edge of stability.
struct PlotOver {
  std::filesystem::path file;
  TableKey x, y;  ///< CSV columns, in the units of the axes
  std::string label;
  ColumnKeys match;  ///< keys of a picture's runs
};

/// Lines over x, or a map whose cells have two keys' values and the colour of a metric.
enum class PlotKind : std::uint8_t { Lines, Map };

/// What an error bar or a band around a mean over runs shows.
enum class PlotInterval : std::uint8_t {
  Deviation,  ///< mean ± sample standard deviation
  Confidence  ///< the 95 % confidence interval of the mean (Student's t)
};

struct PlotSpec {
  PlotKind kind = PlotKind::Lines;
  std::vector<TableKey> pictures;  ///< one picture per combination of values; empty: one picture
  std::vector<TableKey> lines;     ///< one line per combination of values; empty: laid_out()
  TableKey x;           ///< epoch, minibatch, tokens, stage (of a probe's values), or a key of runs
  std::string x_title;  ///< what stands below the axis of x; "": its name
  TableKey y;           ///< of a map: a key of runs
  double loss = 0;      ///< that steps_to and its kin ask for
  TableKey metric;      ///< what lines draw over x, and the colours of a map
  const char* metric_option = "plot.y";  ///< the option that named it
  std::string epoch;                     ///< "last" or "best": the value of a run that is one point
  PlotInterval interval = PlotInterval::Deviation;
  bool labelled = false;   ///< the sweep gives its runs labels of their own
  bool x_is_free = false;  ///< the section gives no x
  bool log_x = false, log_y = false, log_color = false;
  std::filesystem::path hardware;  ///< x-axis: modelled hours on it; empty: none
  std::optional<PlotPublished> published;
  std::optional<PlotOver> over;

  /// Whether x is a key of runs, so that a run is one point.
  bool over_key() const;
  /// Whether it draws a column of evaluations.csv over mini-batches or tokens.
  bool over_evaluations() const;
  /// Whether the x-axis has modelled hours.
  bool in_hours() const;
  /// Whether each stage of a run has a line of its own.
  bool line_per_stage() const;
};

/// Reads `document.plot` (all defaults without one). Throws Error{Experiment} with all problems.
PlotSpec read_plot_spec(const Value& document);

/// Records a problem for each key of the section that no run has.
void check_plot_keys(const PlotSpec& spec, const std::vector<RunRecord>& runs, Problems& problems);

/// The options of the section, for the JSON Schema and `describe`.
std::vector<OptionInfo> plot_options();

}  // namespace pipewright
