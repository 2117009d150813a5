// SPDX-License-Identifier: Apache-2.0
/// Everything that a run has measured, one number at a time: epochs.csv, traffic.csv, steps.csv,
/// evaluations.csv and probes.csv of its folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/records/probe_log.h"
#include "core/records/run_record.h"

namespace pipewright {

/// A run that leaves its folder for another program.
struct ExportedRun {
  std::string name;  ///< the folder's, behind that of its sweep where several are exported
  RunRecord record;
};

/// Throws Error{Data} with the file and its line if a file of a run cannot be read. A record counts
/// a run with such files among those that failed.
void check_files(const RunRecord& record);

/// The place of the column `epoch`; 0 for a run without epochs.csv. Throws Error{Data} naming the
/// file if it has no such column.
std::size_t epoch_column(const RunRecord& record);

/// A row of steps.csv.
struct StepRow {
  int epoch = 0, minibatch = 0;  ///< both from 0; the mini-batch within its epoch
  std::vector<double> numbers;   ///< as the columns; NaN for empty fields
};
struct StepTable {
  std::vector<std::string> columns;  ///< behind the place: "loss", "loss_2", "lr"
};
/// Reads steps.csv row by row, so that it may be larger than the memory; a last line that is not
/// complete yet is left out. Throws Error{Data} with file, line and column.
StepTable read_steps(const std::filesystem::path& run_folder,
                     const std::function<void(const StepTable&, const StepRow&)>& take);

/// A number with its place in the training.
struct MetricRow {
  int epoch = 0;
  std::optional<int> minibatch;  ///< within the epoch; none: a number of the whole epoch
  /// "test_loss", "loss", "lr_per_step", "evaluation.test_loss", "probe.norms.gradient[0]"
  std::string metric;
  double value = 0;
};
/// Calls `take` with the other numbers of each row of evaluations.csv, whose mini-batch is the last
/// before the evaluation; `metric` is the column. Files of earlier programs do not say the place.
void read_evaluations(const RunRecord& record, const std::function<void(const MetricRow&)>& take);

/// Calls `take` with the numbers of epochs, then of steps, evaluations and probes. Fields without a
/// number are left out. Throws Error{Data}.
void read_metric_rows(const RunRecord& record, const std::function<void(const MetricRow&)>& take);

}  // namespace pipewright
