// SPDX-License-Identifier: Apache-2.0
/// The files that a run writes to its folder. Each is complete once it has its final name. For
/// locking see run_claim.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/csv.h"
#include "core/config/value.h"
#include "core/schedule/traffic.h"
#include "core/system/file.h"

namespace pipewright {

/// One row of epochs.csv. Values that were not evaluated are NaN, written as empty fields.
struct EpochRow {
  int epoch = 0;
  double train_loss = 0, test_loss = 0, test_accuracy = 0;
  double lr = 0, seconds = 0, samples_per_second = 0;
  std::vector<double> metrics;  ///< metrics of test data other than accuracy
};

/// One row of evaluations.csv: an evaluation after so many mini-batches of the training.
struct EvaluationRow {
  std::int64_t minibatches = 0;
  double samples = 0;  ///< trained on so far
  double tokens = 0;   ///< of these samples, with padding; NaN: they have none
  double seconds = 0;  ///< time of training so far, without evaluation
  double test_loss = 0, test_accuracy = 0;
  std::vector<double> metrics;  ///< as EpochRow::metrics
};

/// The columns of epochs.csv in order, but those of metrics.
std::vector<std::string> epoch_columns();

/// One row of traffic.csv: the traffic over one edge, or into one stage's sums over replicas,
/// during the whole training.
struct TrafficRow {
  EdgeTraffic edge;
  int from_worker = 0, to_worker = 0;  ///< workers of the first replica
  std::int64_t minibatches = 0;
  double seconds = 0;  ///< time of training without evaluation
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  /// The state in run.json ("done", "failed", "interrupted" or "running"); "missing" without one.
  std::string state() const;
  /// Removes the files with names of ours (run_files.h). Requires a claim on the folder.
  void clear() const;
  /// Writes experiment.yaml, unless it has this content already.
  void write_experiment(const Value& resolved) const;
  /// Writes run.json.
  void write_state(const Value& run) const;
  /// Writes epochs.csv; a column "test_<name>" for each metric follows its own columns.
  void write_epochs(const std::vector<EpochRow>& rows, const std::vector<std::string>& metrics,
                    Syncs syncs = {}) const;
  /// Writes evaluations.csv; columns of metrics follow as in epochs.csv. `per_epoch`: mini-batches.
  void write_evaluations(const std::vector<EvaluationRow>& rows, std::int64_t per_epoch,
                         const std::vector<std::string>& metrics, Syncs syncs = {}) const;
  /// Writes traffic.csv. required_bytes_per_second is sent_bytes divided by the seconds of
  /// training: the rate that a link, or a sum, must reach at this speed. The last column, kind, is
  /// a word: forward, backward or reduce.
  void write_traffic(const std::vector<TrafficRow>& rows, Syncs syncs = {}) const;
  /// Path of steps.csv. Columns of auxiliary losses are called loss_<stage>; fields are empty while
  /// there was no such head.
  std::filesystem::path steps() const { return path_ / "steps.csv"; }
  std::filesystem::path probes() const { return path_ / "probes.csv"; }
  std::filesystem::path evaluations() const { return path_ / "evaluations.csv"; }
  std::filesystem::path traffic() const { return path_ / "traffic.csv"; }
  /// Writes last-actions-<worker>.txt: the last actions of a worker before a failure, with times in
  /// seconds.
  void write_last_actions(int worker, const std::string& actions) const;
  std::filesystem::path experiment() const { return path_ / "experiment.yaml"; }
  std::filesystem::path final_weights() const { return path_ / "final.safetensors"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

 private:
  std::filesystem::path path_;
};

/// Header and rows of a CSV file of numbers. Empty fields are NaN, and so are all fields of the
/// column named `words`. Reading throws Error{Data} with file, line and column.
struct NumberTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
};
NumberTable read_number_table(const std::filesystem::path& path, std::string_view words = {});

/// The number that a field of the reader's row says; NaN for an empty one. Throws Error{Data}.
double number_of(const CsvReader& reader, const CsvField& field);

}  // namespace pipewright
