// SPDX-License-Identifier: Apache-2.0
/// The state of a drained training besides its stages, and its file in a checkpoint. All tensors
/// are doubles, so that every loss and mean is restored to the bit: "epochs" (epochs × columns of
/// epochs.csv without the first), "open_losses" (trained mini-batches of the unfinished epoch × 1),
/// "evaluations" (evaluations × columns of evaluations.csv), "traffic" (edges × 7), "open_seconds"
/// (1 × 1). Earlier losses are in the step log only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/records/run_folder.h"
#include "core/schedule/traffic.h"

namespace pipewright {

struct TrainingState {
  std::int64_t minibatches = 0;  ///< trained so far
  std::vector<EpochRow> epochs;  ///< finished epochs
  std::vector<EvaluationRow> evaluations;
  std::vector<double> open_losses;   ///< one per mini-batch of the unfinished epoch
  std::vector<EdgeTraffic> traffic;  ///< traffic so far
  double open_seconds = 0;           ///< time spent on the unfinished epoch
};

void write_training_state(const std::filesystem::path& path, const TrainingState& state,
                          Syncs syncs = {});

/// Reads such a file. Throws Error{Data} if it does not fit a training after `minibatches`
/// mini-batches with so many metrics besides accuracy.
TrainingState read_training_state(const std::filesystem::path& path, std::int64_t minibatches,
                                  int minibatches_per_epoch, std::size_t metrics);

}  // namespace pipewright
