#include "core/stage/layer.h"

#include "core/base/error.h"

namespace pipewright {

Tensors Layer::forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                           std::span<at::Tensor> buffers, const Pass& pass) const {
  PIPEWRIGHT_CHECK(inputs.size() == 1, "layer '", name_, "' takes one tensor, not ", inputs.size());
  return {forward(inputs[0], parameters, buffers, pass)};
}

std::string parameter_name(const Layer& layer, const std::string& parameter) {
  return layer.name() + "." + parameter;
}

}  // namespace pipewright
