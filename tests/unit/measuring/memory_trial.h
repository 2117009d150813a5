// SPDX-License-Identifier: Apache-2.0
/// Measures the memory that stages of an experiment need, to check the predictions of a profile.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// Peak bytes of each stage of replica 0 in LibTorch's allocator, including weights, optimizer
/// state and buffers. Each stage runs its part of the scheme's schedule alone, for so many
/// mini-batches, on synthetic inputs and gradients. Needs a settled cut.
std::vector<std::int64_t> measure_stage_peaks(const Experiment& experiment, int minibatches,
                                              at::Device device);

}  // namespace pipewright
