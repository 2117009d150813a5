/// How much memory the stages of an experiment really need: the check of what a profile predicts.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// Peak bytes of each stage of replica 0, as LibTorch's allocator counts them, while it does its
/// part of the scheme's schedule for so many mini-batches, alone, on made-up inputs and gradients.
/// Weights, optimizer state and buffers are in it. Needs a settled cut.
std::vector<std::int64_t> measure_stage_peaks(const Experiment& experiment, int minibatches,
                                              at::Device device);

}  // namespace pipewright
