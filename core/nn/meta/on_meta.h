// SPDX-License-Identifier: Apache-2.0
/// Operators on the meta device, where tensors have a shape but no memory, for those that LibTorch
/// implements there in Python only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright {

/// Returns `output` with an autograd node as if one operator had computed it from `inputs` and
/// saved `kept` for its backward, which returns a gradient for each input. `output` may be one of
/// `kept`. Undefined inputs are skipped. `operators`: those that the real forward starts on a GPU,
/// for OperationCount::kernels().
at::Tensor made_on_meta(const std::vector<at::Tensor>& inputs, const at::Tensor& output,
                        const std::vector<at::Tensor>& kept, std::int64_t operators = 1);

}  // namespace pipewright
