// SPDX-License-Identifier: Apache-2.0
/// The `table` section of an experiment file: the keys of rows and columns and the metric of cells.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/options.h"
#include "core/config/value.h"

namespace pipewright {

/// A key of a run (run_keys.h), with its place for messages.
struct TableKey {
  std::string name;
  Place place;
};

using ColumnKeys = std::vector<std::pair<std::string, TableKey>>;  ///< CSV column → key

/// Published numbers beside ours: rows whose CSV columns have the values of a run's keys.
struct TablePublished {
  std::filesystem::path file;
  Place place;
  ColumnKeys match;
  TableKey value;               ///< CSV column with the number
  std::optional<TableKey> std;  ///< CSV column with its deviation
  std::string metric;           ///< what the numbers are of
  bool error = false;           ///< numbers are errors in percent; 100 − error is shown
  /// Known differences between our recipe and the published one: label or "all", and the note.
  std::vector<std::pair<std::string, std::string>> differs;
};

struct TableSpec {
  std::vector<TableKey> rows;     ///< empty: laid_out()
  std::vector<TableKey> columns;  ///< empty: laid_out(), or with rows one column with the metric
  TableKey metric;                ///< a column of epochs.csv
  std::vector<TableKey> beside;   ///< further metrics, one column each
  double loss = 0;                ///< that steps_to and its kin ask for
  std::string epoch;              ///< "last" or "best"
  std::optional<TableKey> best_over;  ///< key of which each cell shows its best value only
  std::string chosen_by;              ///< metric of held-out samples that best_over goes by
  std::filesystem::path hardware;     ///< description on which runs are modelled; empty: none
  std::optional<TablePublished> published;
  bool labelled = false;            ///< the sweep gives its runs labels of their own
  std::optional<double> failed_as;  ///< the metric that a failed or diverged run counts with
  std::optional<double> floor;      ///< the metric from which on a run has learned

  /// The same with another metric, of which failed_as and floor say nothing.
  TableSpec with_metric(const TableKey& other) const;
  /// Keeps the meaning of numbers that were written for another metric than the present one:
  /// forgets failed_as and floor, and published stays of that metric.
  void keep_meaning_of(const TableSpec& written);
  /// The published numbers if they are of the table's metric, or null.
  const TablePublished* published_of_metric() const;
};

/// Reads an option that is one key or a list of keys.
std::vector<TableKey> read_keys(Options& options, const std::string& name, const char* help);
/// Reads `file`, `match` and `value` of a section `published`.
TablePublished read_published_match(Options& section);

inline constexpr const char* kAccuracy = "test_accuracy";

/// The metric of a table or plot that names none: test_accuracy, or test_loss where the document's
/// loss is mse or l1, whose targets have no accuracy.
std::string default_metric(const Value& document);

/// Reads the option `loss` of steps_to and its kin. Records a problem if one of the metrics is such
/// and no loss is given.
double read_loss_to_reach(Options& options, const std::vector<std::string>& metrics,
                          std::optional<double> otherwise = {});

/// Whether the document's sweep gives its runs labels of their own.
bool gives_labels(const Value& document);

/// Reads `document.table` (all defaults without one). Throws Error{Experiment} with all problems.
TableSpec read_table_spec(const Value& document);

/// A metric of the table that is modelled although no hardware is given; null if there is none.
const TableKey* metric_without_hardware(const TableSpec& spec);

/// The options of the section, for the JSON Schema and `describe`.
std::vector<OptionInfo> table_options();

}  // namespace pipewright
