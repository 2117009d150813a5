// SPDX-License-Identifier: Apache-2.0
/// Synthetic samples for measuring: deterministic numbers and tokens, spread over their range.
#pragma once

#include <vector>

#include "core/experiment/experiment.h"
#include "core/nn/dataset.h"
#include "core/nn/model.h"
#include "core/nn/precision.h"

namespace pipewright {

/// Inputs x and targets y for the model, texts at their full length; a floating x has the type of
/// `options`, and so has y with `real_targets` (Task::Regress).
Batch made_up_batch(const Model& model, std::int64_t samples, const at::TensorOptions& options,
                    bool real_targets = false);
/// The same with targets as the experiment's loss compares with.
Batch made_up_batch(const Experiment& experiment, std::int64_t samples,
                    const at::TensorOptions& options);

/// Uninitialised tensors with the shapes and formats of what a layer computes with: its parameters,
/// or their copies in mixed precision, and its buffers.
std::vector<at::Tensor> empty_parameters(const Layer& layer, const Precision& precision,
                                         at::Device device);
std::vector<at::Tensor> empty_buffers(const Layer& layer, const Precision& precision,
                                      at::Device device);

}  // namespace pipewright
