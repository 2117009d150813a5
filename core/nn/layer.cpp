// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layer.h"

namespace pipewright {

Tensors Layer::forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                           std::span<at::Tensor> buffers, const Pass& pass) const {
  Tensors outputs = inputs;
  outputs[0] = forward(inputs[0], parameters, buffers, pass);
  return outputs;
}

// A name that begins with a dot is a full name behind it: the layers of somebody's module have its
// names, whatever runs of operators the layers are.
std::string parameter_name(const Layer& layer, const std::string& parameter) {
  if (parameter.starts_with('.')) return parameter.substr(1);
  return layer.name() + "." + parameter;
}

}  // namespace pipewright
