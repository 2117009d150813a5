/// What a run leaves in its folder; each file is whole once it has its final name. See run_claim.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/schedule/traffic.h"

namespace pipewright {

/// One row of epochs.csv. Not evaluated: NaN, written as an empty field.
struct EpochRow {
  int epoch = 0;
  double train_loss = 0, test_loss = 0, test_accuracy = 0;
  double lr = 0, seconds = 0, samples_per_second = 0;
  std::vector<double> metrics;  ///< of test data, besides the accuracy
};

/// One row of traffic.csv: what crossed an edge, or went into sums over replicas, in all of the
/// training.
struct TrafficRow {
  EdgeTraffic edge;
  int from_worker = 0, to_worker = 0;  ///< of the first replica
  std::int64_t minibatches = 0;
  double seconds = 0;  ///< of training, without evaluation
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  /// "done", "failed", "interrupted", "running" of run.json; "missing" without one.
  std::string state() const;
  void clear() const;  ///< removes what a run leaves, by name (run_files.h). Needs a claim on it
  void write_experiment(
      const Value& resolved) const;          ///< experiment.yaml, if it says another thing
  void write_state(const Value& run) const;  ///< run.json
  /// epochs.csv; after its own columns "test_<name>" of each metric.
  void write_epochs(const std::vector<EpochRow>& rows,
                    const std::vector<std::string>& metrics) const;
  /// traffic.csv. required_bytes_per_second is what a link must carry to keep the training's pace,
  /// and of sums what goes into them. The last column, kind, is a word: forward, backward, reduce.
  void write_traffic(const std::vector<TrafficRow>& rows) const;
  /// Auxiliary columns are called loss_<stage>, empty where there was no such head yet.
  std::filesystem::path steps() const { return path_ / "steps.csv"; }
  std::filesystem::path traffic() const { return path_ / "traffic.csv"; }
  /// last-actions-<worker>.txt: what a worker did before a failure, and when, in seconds.
  void write_last_actions(int worker, const std::string& actions) const;
  std::filesystem::path experiment() const { return path_ / "experiment.yaml"; }
  std::filesystem::path final_weights() const { return path_ / "final.safetensors"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

 private:
  std::filesystem::path path_;
};

/// Header and rows of a CSV file of numbers (empty fields are NaN, and so is what a column called
/// `words` holds). Throws Error{Data} with file and line.
struct NumberTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
};
NumberTable read_number_table(const std::filesystem::path& path, std::string_view words = {});

}  // namespace pipewright
