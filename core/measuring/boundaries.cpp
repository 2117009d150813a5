// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/boundaries.h"

#include "core/measuring/layer_count.h"
#include "core/measuring/made_up_batch.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

Tensors through(const std::vector<LayerPtr>& layers, Tensors values, const Precision& precision,
                LentTensors& lent) {
  const at::NoGradGuard no_grad;
  for (const LayerPtr& next : layers) {
    const auto parameters = empty_parameters(*next, precision, at::kMeta);
    auto buffers = empty_buffers(*next, precision, at::kMeta);
    lent.give(*next, values);
    values = next->forward_all(values, parameters, buffers, {.format = precision.values});
    lent.take(*next, values);
  }
  return values;
}

}  // namespace

std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs) {
  std::vector<Tensors> all;
  const auto stages = experiment.stage_layers();
  LentTensors lent;
  for (std::size_t stage = 0; stage + 1 < stages.size(); ++stage) {
    inputs = through(stages[stage], std::move(inputs), experiment.train.precision, lent);
    all.push_back(inputs);
  }
  return all;
}

Tensors outputs_on_meta(const Experiment& experiment, Tensors inputs) {
  LentTensors lent;
  return through(experiment.layers, std::move(inputs), experiment.train.precision, lent);
}

}  // namespace pipewright
