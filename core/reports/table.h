/// Tables of results: rows × columns of mean ± std (n), from run folders. A run that is not done
/// is counted as what it is and never becomes a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/reports/table_spec.h"

namespace pipewright {

/// A number of others beside ours.
struct PublishedNumber {
  std::string text;                ///< as shown
  std::optional<double> value;     ///< in the unit that is shown; none for texts such as "OOM"
  std::string std;                 ///< as the file spells it, or ""
  std::vector<std::size_t> notes;  ///< indices into Table::notes
};

/// The runs that share a row and a column.
struct TableCell {
  std::vector<double> values;      ///< the metric of each run that is done
  std::vector<std::string> seeds;  ///< train.seed of each of these; "–" where it is not known
  std::vector<std::size_t> runs;   ///< indices into the records given
  int failed = 0, missing = 0, interrupted = 0, running = 0;
  int without = 0;  ///< done, but without the metric
  std::optional<PublishedNumber> published;

  bool empty() const { return runs.empty(); }
  double mean() const;  ///< NaN without values
  double std() const;   ///< of a sample (n−1); NaN with fewer than two values
};

struct Table {
  std::string metric;
  bool percent = false;  ///< the metric is a fraction, shown in percent
  std::string caption;
  std::vector<std::string> row_keys;  ///< one per column of row names
  std::vector<std::vector<std::string>> row_names;
  std::vector<std::string> column_names;
  std::vector<std::vector<TableCell>> cells;  ///< [row][column]
  std::vector<std::string> notes;             ///< how recipes differ from the published ones
  std::vector<Table> beside;                  ///< the same rows, one column of another metric each
  std::vector<std::string> mixed;  ///< keys besides train.seed in which runs of a cell differ
};

/// Rows and columns stand in the order in which the runs name them first. Throws Error{Experiment}
/// with all problems: keys no run has, a metric no run has, published numbers that do not fit.
Table make_table(const TableSpec& spec, const std::vector<RunRecord>& runs);

/// "Cells mix optimizer.lr: …", of the columns beside too; "" where runs of a cell differ in their
/// seed at most. Markdown and LaTeX have it below the table.
std::string mixing_note(const Table& table);

/// "vgg16, PD4"; "stages 2, PD4": numbers with what they count.
std::string cell_name(const Table& table, std::size_t row, std::size_t column);

enum class TableFormat : std::uint8_t { Markdown, Csv, Latex };

/// The whole table with its caption (CSV: without). Numbers of accuracies are in percent.
std::string print_table(const Table& table, TableFormat format);

}  // namespace pipewright
