// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/head_count.h"

#include <algorithm>

#include "core/measuring/layer_count.h"
#include "core/measuring/made_up_batch.h"
#include "core/measuring/profiling.h"
#include "core/runtime/devices/memory_count.h"
#include "core/stage/stage.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Peaks of the head's pass, measured behind a stage of one layer.
void count_peaks(LayerCost& cost, const Experiment& e, std::size_t layer, const LayerPtr& head,
                 const Tensors& inputs, const at::Tensor& targets) {
  const at::TensorOptions options = at::TensorOptions(e.train.precision.weights).device(at::kMeta);
  Stage stage({.layers = {e.layers[layer]},
               .head = head,
               .options = options,
               .narrow = e.train.precision.narrow(),
               .optimizer = e.optimizer.get(),
               .loss = e.loss.get()},
              e.train.seed);
  MemoryCount count(at::kMeta);
  int id = 0;
  const auto most = [&] {
    stage.forward(id, inputs, {}, /*input_gradient=*/false);
    const std::int64_t before = count.live();
    count.forget_peak();
    stage.head(id++, targets, {}, 1, /*output_gradient=*/true);
    return count.peak() - before - cost.activation_bytes;
  };
  cost.peak_bytes = std::max<std::int64_t>(0, most() - (cost.parameter_bytes - cost.copy_bytes));
  std::int64_t adding = most();
  if (cost.copy_bytes > 0) adding = std::max(adding - cost.copy_bytes, most());  // sums become wide
  cost.peak_adding_bytes = std::max(adding, cost.peak_bytes);
}

LayerCost count_head(const Experiment& e, std::size_t layer, const Tensors& inputs,
                     const Tensors& outputs, const at::Tensor& targets) {
  const LayerPtr head = e.model->head(layer);
  if (!head) return {};
  head->set_name("heads.0");  // whatever its stage is
  Tensors values{outputs[0]};
  LayerCost cost = count_layer(*head, values, e);
  cost.activation_bytes = boundary_bytes({outputs[0]});
  const at::AutoGradMode record(true);
  count_peaks(cost, e, layer, head, inputs, targets);
  return cost;
}

}  // namespace

AuxiliaryHeads count_heads(const Experiment& e, int stages) {
  AuxiliaryHeads heads{.stages = e.scheme->auxiliary_sites(stages), .behind = {}};
  if (heads.stages.empty()) return heads;
  const at::NoGradGuard no_grad;
  const Batch batch = made_up_batch(e, described(e, at::kMeta).samples,
                                    at::TensorOptions(e.train.precision.values).device(at::kMeta));
  Tensors x = batch.x;
  for (std::size_t layer = 0; layer + 1 < e.layers.size(); ++layer) {
    const Tensors inputs = x;
    count_layer(*e.layers[layer], x, e);
    heads.behind.push_back(count_head(e, layer, inputs, x, batch.y));
  }
  return heads;
}

}  // namespace pipewright
