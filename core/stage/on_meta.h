/// The meta device, where tensors have a shape and no memory, for operators that LibTorch knows
/// there in Python only.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace pipewright {

/// The output, with a graph as if an operator had made it of the inputs and kept those tensors for
/// its backward, which makes a gradient of each input. The output may be among what is kept;
/// undefined inputs are none.
at::Tensor made_on_meta(const std::vector<at::Tensor>& inputs, const at::Tensor& output,
                        const std::vector<at::Tensor>& kept);

}  // namespace pipewright
