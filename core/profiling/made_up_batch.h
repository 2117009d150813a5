// SPDX-License-Identifier: Apache-2.0
/// Synthetic samples for measuring: deterministic numbers and tokens, spread over their range.
#pragma once

#include <vector>

#include "core/stage/dataset.h"
#include "core/stage/model.h"

namespace pipewright {

/// Inputs x and targets y for the model, texts at their full length; a floating x has the type of
/// `options`.
Batch made_up_batch(const Model& model, std::int64_t samples, const at::TensorOptions& options);

/// Uninitialised tensors with the shapes of a layer's parameters or buffers.
std::vector<at::Tensor> empty_tensors(const std::vector<ParameterSpec>& specs,
                                      const at::TensorOptions& options);
std::vector<at::Tensor> empty_tensors(const std::vector<BufferSpec>& specs,
                                      const at::TensorOptions& options);

}  // namespace pipewright
