/// The `table` section of an experiment file: what stands in rows, columns and cells.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/options.h"
#include "core/config/value.h"

namespace pipewright {

/// A dotted key of the resolved experiment, "label", or in `match` "=text" for that text; with its
/// place, for messages.
struct TableKey {
  std::string name;
  Place place;
};

/// Numbers of others beside ours: those whose CSV columns have the texts of these keys.
struct TablePublished {
  std::filesystem::path file;
  Place place;
  std::vector<std::pair<std::string, TableKey>> match;  ///< CSV column → key
  TableKey value;                                       ///< CSV column of the number
  std::optional<TableKey> std;                          ///< … of its standard deviation
  bool error = false;  ///< the number is an error in percent: 100 minus it is shown
  /// What is known to differ between our recipe and the published one: label, or "all", and text.
  std::vector<std::pair<std::string, std::string>> differs;
};

struct TableSpec {
  std::vector<TableKey> rows;      ///< empty: what the sweep varies, without seeds and columns
  std::vector<TableKey> columns;   ///< empty: one column, the metric
  TableKey metric;                 ///< a column of epochs.csv
  std::vector<TableKey> beside;    ///< further metrics, a column each
  std::string epoch;               ///< "last" or "best"
  std::filesystem::path hardware;  ///< to model runs on; empty: none
  std::optional<TablePublished> published;
  bool labelled = false;  ///< the sweep gives its runs labels of their own
};

/// One key or a list of keys.
std::vector<TableKey> read_keys(Options& options, const std::string& name, const char* help);
/// `file`, `match`, `value` of a section `published`.
TablePublished read_published_match(Options& section);

/// Reads `document.table` (all defaults without one). Throws Error{Experiment} with all problems.
TableSpec read_table_spec(const Value& document);

/// The options of the section, for the JSON Schema and help pages.
std::vector<OptionInfo> table_options();

}  // namespace pipewright
