/// Everything a run needs to go on as if it had never stopped, in one safetensors file: weights,
/// buffers of every replica, optimizer state, and the epoch they belong to.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/stage/stage.h"

namespace pipewright {

/// Written atomically, after `epochs` whole epochs. `digest` names the experiment.
void save_checkpoint(const std::filesystem::path& path, const Optimizer& optimizer, bool predicts,
                     const std::vector<std::unique_ptr<Stage>>& stages, int stages_per_replica,
                     int epochs, const std::string& digest);

/// Puts a checkpoint into freshly made stages; returns the epochs it has behind it. Throws
/// Error{Data} if it does not fit, Error{Experiment} if another experiment wrote it.
int load_checkpoint(const std::filesystem::path& path, const Optimizer& optimizer, bool predicts,
                    const std::vector<std::unique_ptr<Stage>>& stages, int stages_per_replica,
                    const std::string& digest);

}  // namespace pipewright
