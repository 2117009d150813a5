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

/// What the head needs, but for its peaks.
LayerCost count_head(const Experiment& e, const LayerPtr& head, const at::Tensor& output) {
  const at::NoGradGuard no_grad;
  Tensors values{at::empty_like(output, output.options().device(at::kMeta))};
  const std::int64_t gradient = boundary_bytes(values);
  LayerCost cost = count_layer(*head, values, e);
  cost.activation_bytes = gradient;
  return cost;
}

}  // namespace

LayerPtr head_of(const Experiment& e, std::size_t layer) {
  const LayerPtr head = e.model->head(layer);
  if (head) head->set_name("heads.0");
  return head;
}

LayerCost head_memory(const Experiment& e, std::size_t layer, const Tensors& inputs,
                      const at::Tensor& output, const at::Tensor& targets) {
  const LayerPtr head = head_of(e, layer);
  if (!head) return {};
  LayerCost cost = count_head(e, head, output);
  const at::Device device = output.device();
  Stage stage({.layers = {e.layers[layer]},
               .head = head,
               .options = at::TensorOptions(e.train.precision.weights).device(device),
               .narrow = e.train.precision.narrow(),
               .channels_last = e.layout.channels_last.value_or(false),
               .optimizer = e.optimizer.get(),
               .loss = e.loss.get()},
              e.train.seed);
  const at::AutoGradMode record(true);
  MemoryCount count(device);
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
  return cost;
}

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
    heads.behind.push_back(head_memory(e, layer, inputs, x[0], batch.y));
  }
  return heads;
}

void take_peaks(AuxiliaryHeads& heads, const Profile& profile) {
  for (std::size_t i = 0; i < heads.behind.size(); ++i) {
    const LayerCost& measured = profile.layers[i];
    if (measured.head_peak_adding == 0) continue;
    heads.behind[i].peak_bytes = measured.head_peak;
    heads.behind[i].peak_adding_bytes = measured.head_peak_adding;
  }
}

}  // namespace pipewright
