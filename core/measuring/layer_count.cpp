// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/layer_count.h"

#include "core/measuring/made_up_batch.h"
#include "core/measuring/weight_work.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"

namespace pipewright {

std::int64_t boundary_bytes(const Tensors& tensors) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

LayerCost count_layer(const Layer& layer, Tensors& x, const Experiment& e) {
  const Precision& precision = e.train.precision;
  const auto parameters = empty_parameters(layer, precision, at::kMeta);
  auto buffers = empty_buffers(layer, precision, at::kMeta);
  LayerCost cost{.name = layer.name()};
  if (const SkipUse use = layer.skips(); use.borrows)
    for (auto lent = x.end() - (use.takes + use.looks); lent != x.end(); ++lent)
      cost.borrowed_bytes += static_cast<std::int64_t>(lent->nbytes());
  {
    const OperationCount operations;
    x = layer.forward_all(x, parameters, buffers, {.format = precision.values});
    cost.flops = operations.flops();
    cost.kernels = operations.kernels();
  }
  count_update(cost, *e.optimizer, layer, parameters);
  cost.output_bytes = boundary_bytes(x);
  for (auto lent = x.end() - lent_behind(layer); lent != x.end(); ++lent)
    cost.output_bytes -= static_cast<std::int64_t>(lent->nbytes());
  for (const at::Tensor& parameter : parameters) {
    cost.parameters += parameter.numel();
    if (parameter.scalar_type() != precision.weights)
      cost.copy_bytes += static_cast<std::int64_t>(parameter.nbytes());
  }
  cost.parameter_bytes =
      cost.parameters * static_cast<std::int64_t>(at::elementSize(precision.weights));
  for (const at::Tensor& buffer : buffers)
    cost.buffer_bytes += static_cast<std::int64_t>(buffer.nbytes());
  return cost;
}

}  // namespace pipewright
