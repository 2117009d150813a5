// SPDX-License-Identifier: Apache-2.0
/// Tables of results: rows × columns of mean ± std (n). An unfinished run is counted by its state
/// and contributes no number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

struct BestChoice;

/// A published number beside ours.
struct PublishedNumber {
  std::string text;                ///< as shown
  std::optional<double> value;     ///< in the unit shown; none for texts such as "OOM"
  std::string std;                 ///< standard deviation as in the file, or ""
  std::vector<std::size_t> notes;  ///< indices into Table::notes
};

/// The runs that share a row and a column.
struct TableCell {
  std::vector<double> values;      ///< the metric of each run that is done
  std::vector<std::string> seeds;  ///< train.seed of each of them; "–" if unknown
  std::vector<std::size_t> runs;   ///< indices into the records
  int failed = 0, missing = 0, interrupted = 0, running = 0;
  int uncounted = 0;           ///< failed runs that have no value: without TableSpec::failed_as
  int without = 0;             ///< runs that are done but lack the metric
  std::optional<int> learned;  ///< runs that have come to TableSpec::floor, where there is one
  std::optional<PublishedNumber> published;
  std::string chosen;  ///< the value of TableSpec::best_over; "" without one

  bool empty() const { return runs.empty(); }
  /// Runs that have a value, or failed without one.
  std::size_t ended() const { return values.size() + static_cast<std::size_t>(uncounted); }
  /// Values of steps_to and its kin that say "not reached"; mean() is then infinite.
  std::size_t not_reached() const;
  double mean() const;  ///< NaN without values
  double std() const;   ///< sample deviation (n − 1); NaN with fewer than two values
};

struct Table {
  std::string metric;
  bool percent = false;  ///< the metric is a fraction, shown in percent
  std::string caption;
  std::vector<std::string> row_keys;  ///< keys of the columns of row names
  std::vector<std::vector<std::string>> row_names;
  std::vector<std::string> column_keys;  ///< that divide the columns; empty: one column, the metric
  std::vector<std::string> column_names;
  std::vector<std::vector<std::string>> column_values;  ///< of column_keys, for each column
  std::vector<std::vector<TableCell>> cells;            ///< [row][column]
  std::vector<std::string> notes;                       ///< differences from published recipes
  std::vector<Table> beside;         ///< tables of further metrics: same rows, one column
  std::string best_over;             ///< the key of TableCell::chosen; "" without one
  std::vector<std::string> choices;  ///< how TableCell::chosen was chosen, a sentence for each cell
  std::vector<std::string> mixed;    ///< keys other than train.seed in which runs of a cell differ
};

/// Makes a table, laid out as laid_out() says. Values of a key are in order of first appearance in
/// the runs. Throws Error{Experiment} with all problems: keys or a metric that no run has,
/// published numbers that do not fit, no held-out samples to choose by.
Table make_table(const TableSpec& spec, const std::vector<RunRecord>& runs);

/// The runs that stand in a picture beside the table: those of its cells. With best_over these are
/// the runs with the chosen values; where `keys`, which the picture tells apart, have its key, too,
/// they are those with all of its values, evaluated on the same samples.
std::vector<RunRecord> runs_beside(const Table& table, const std::vector<TableKey>& keys,
                                   const std::vector<RunRecord>& runs);

/// The caption of a table of so many runs: what a cell's numbers are, and from how many runs they
/// come. `choice`: how the runs of cells were chosen; null: they were not.
std::string table_caption(const Table& table, const TableSpec& spec, std::size_t runs,
                          const BestChoice* choice);

/// The heading above the sentences of Table::choices.
std::string choices_heading(const Table& table);

/// A remark on cells whose runs differ in more than their seed ("Cells mix optimizer.lr: …"), or
/// "". It covers the tables in `beside`, too. Markdown and LaTeX have it below the table.
std::string mixing_note(const Table& table);

/// Name of a cell, in which numbers have their key: "vgg16, PD4" or "stages 2, PD4".
std::string cell_name(const Table& table, std::size_t row, std::size_t column);

/// Header and rows of the table as texts; the first row_keys.size() columns are names. `escaped`
/// makes a text from outside fit for what it is shown in.
std::vector<std::vector<std::string>> table_texts(const Table& table,
                                                  std::string (*escaped)(std::string_view));

enum class TableFormat : std::uint8_t { Markdown, Csv, Latex };

/// Sentences below a table under a heading: a list of Markdown or LaTeX, or for CSV, which has no
/// place for it, plain lines.
std::string print_list(const std::string& heading, const std::vector<std::string>& sentences,
                       TableFormat format);

/// The whole table as text, with its caption (except CSV). Shares such as accuracies are in
/// percent.
std::string print_table(const Table& table, TableFormat format);

}  // namespace pipewright
