// SPDX-License-Identifier: Apache-2.0
#include "core/stage/layer.h"

namespace pipewright {

Tensors Layer::forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                           std::span<at::Tensor> buffers, const Pass& pass) const {
  Tensors outputs = inputs;
  outputs[0] = forward(inputs[0], parameters, buffers, pass);
  return outputs;
}

std::string parameter_name(const Layer& layer, const std::string& parameter) {
  return layer.name() + "." + parameter;
}

}  // namespace pipewright
