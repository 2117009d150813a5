// SPDX-License-Identifier: Apache-2.0
/// The curves of a training that goes on, in the event file of its run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/exports/event_log.h"
#include "core/records/run_folder.h"

namespace pipewright {

/// For one thread at a time. All functions but the destructor throw Error{Data}.
class TrainingEvents {
 public:
  /// Begins the file of a training or, where mini-batches have been trained already, removes from
  /// it what was recorded after these and goes on. `epochs`: those that are finished.
  TrainingEvents(const std::filesystem::path& run_folder, std::int64_t minibatches,
                 std::int64_t epochs);
  ~TrainingEvents();  ///< flushes; ignores errors
  TrainingEvents(const TrainingEvents&) = delete;
  TrainingEvents& operator=(const TrainingEvents&) = delete;

  /// The loss of a mini-batch, counted over all epochs. It reaches the file within 100
  /// mini-batches.
  void loss(std::int64_t minibatch, double value);
  /// The mini-batches from `first` on, whose numbers are those of these columns of steps.csv:
  /// numbers[m][0] is a mini-batch's loss, unless loss() has recorded it already. NaN is none.
  void steps(const std::vector<std::vector<double>>& numbers, std::int64_t first,
             const std::vector<std::string>& columns, bool recorded);
  /// A finished epoch; `metrics` are the names of its other metrics. Flushes.
  void epoch(const EpochRow& row, const std::vector<std::string>& metrics);
  /// An evaluation inside the training; `metrics` as of epoch(). Flushes.
  void evaluation(const EvaluationRow& row, const std::vector<std::string>& metrics);
  /// What a probe has measured at a mini-batch; no stage: of the whole model.
  void probe(std::int64_t minibatch, const std::string& probe, const std::string& quantity,
             std::optional<int> stage, double value);
  /// Makes what was recorded so far survive a power cut.
  void sync() { log_.sync(); }

 private:
  EventLog log_;
};

}  // namespace pipewright
