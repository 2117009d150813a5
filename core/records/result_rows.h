// SPDX-License-Identifier: Apache-2.0
/// Results of runs as rows of a CSV file, which stay where run folders do not, for example in a
/// repository: docs/formats/results.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/records/run_record.h"

namespace pipewright {

/// The results of one run.
struct ResultRow {
  std::string digest;  ///< of the run's document: the 16 digits at the end of its folder's name
  std::string label;   ///< of its point
  std::string state;   ///< done, diverged or failed
  std::string why;     ///< it failed or diverged
  std::size_t epochs = 0;
  double wall_seconds = kNoNumber, processor_seconds = kNoNumber;  ///< kNoNumber: not known
  std::string processor, instruction_set;                          ///< of the machine
  std::string version, commit;                                     ///< of Pipewright
  std::string started;  ///< when the run began, in UTC; "" in rows of earlier versions
  std::string precision;
  std::map<std::string, std::string> settings;  ///< dotted key → value, as tables have it
  /// Metric → its value after each epoch; kNoNumber where it was not evaluated.
  std::map<std::string, std::vector<double>> metrics;
  std::map<std::string, std::vector<double>> evaluations;  ///< as RunRecord::evaluations

  /// Whether the training came to its end, and would come to the same again.
  bool finished() const { return state != "failed"; }
};

/// Reads a file of rows, of at most 64 MiB and 10 million numbers. Throws Error{Data} with line and
/// column of what is damaged or contradicts itself: nothing is guessed.
std::vector<ResultRow> read_result_rows(const std::filesystem::path& file);

/// The text of a file with these rows, sorted by label, settings and digest, so that equal rows are
/// equal texts. Every number reads back as the same double.
std::string result_rows_text(std::vector<ResultRow> rows);

/// The row of a run in its folder; nullopt unless it is done or has failed. `keys`: the settings to
/// state. Throws Error{Data} if its epochs do not count from 0.
std::optional<ResultRow> row_of(const RunRecord& run, const std::string& digest,
                                const std::vector<std::string>& keys);

/// Makes a record of a row: its state and all its metrics. Label, settings and configuration stay.
void take_row(const ResultRow& row, RunRecord& run);

/// "test_loss of epoch 3 is 0.25 and was 0.26": how the results of `now` differ from those of
/// `before`; "" if they are equal in all that does not depend on the load of the machine.
std::string changes_of_results(const ResultRow& before, const ResultRow& now);

/// Rows of a file and of run folders together.
struct MergedRows {
  std::vector<ResultRow> rows;
  std::size_t added = 0;     ///< runs that had no row
  std::size_t replaced = 0;  ///< runs whose row said that they had failed, or lacked a metric
  /// Runs with other results than their rows, which are of another processor and stay.
  std::vector<std::string> elsewhere;
};

/// Merges by digest. A row of a finished run stays; it gets the metrics that it lacks. Throws
/// Error{Data} if a run has other results than its row, though the processor is the same: `file` is
/// named in it.
MergedRows merged_rows(std::vector<ResultRow> rows, const std::vector<ResultRow>& runs,
                       const std::filesystem::path& file);

}  // namespace pipewright
