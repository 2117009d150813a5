/// What a drained training has besides its stages, and its file in a checkpoint: doubles, so that
/// every loss and mean comes back with its bits. Tensors: "epochs" (epochs × columns of epochs.csv
/// without the first), "open_losses" (mini-batches of the epoch that is not whole yet × 1),
/// "traffic" (edges × 7), "open_seconds" (1 × 1). The losses before are in the step log only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/records/run_folder.h"
#include "core/schedule/traffic.h"

namespace pipewright {

struct TrainingState {
  std::int64_t minibatches = 0;      ///< trained
  std::vector<EpochRow> epochs;      ///< whole ones
  std::vector<double> open_losses;   ///< of the epoch that is not whole yet, per mini-batch
  std::vector<EdgeTraffic> traffic;  ///< so far
  double open_seconds = 0;           ///< spent on the epoch that is not whole yet
};

void write_training_state(const std::filesystem::path& path, const TrainingState& state);

/// Throws Error{Data} if it is not what `minibatches` of training with so many metrics besides the
/// accuracy leave behind.
TrainingState read_training_state(const std::filesystem::path& path, std::int64_t minibatches,
                                  int minibatches_per_epoch, std::size_t metrics);

}  // namespace pipewright
