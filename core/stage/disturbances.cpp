// SPDX-License-Identifier: Apache-2.0
#include "core/stage/disturbances.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <iterator>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

std::vector<TensorQueue::Item> items_of(const FlatLayout& layout) {
  std::vector<TensorQueue::Item> items;
  for (const FlatLayout::Entry& entry : layout.entries) items.push_back({entry.name, entry.shape});
  return items;
}

}  // namespace

Disturbances::Disturbances(const Perturbation& perturbation, const FlatLayout& layout,
                           std::vector<TensorQueue::Item> buffers, const at::TensorOptions& options)
    : delay_(static_cast<std::size_t>(perturbation.gradient_delay)),
      lag_(static_cast<std::size_t>(perturbation.stale_batch_norm)),
      gradients_("gradient", items_of(layout), options, delay_),
      statistics_("statistics", std::move(buffers), options, lag_) {
  if (perturbation.weight_noise > 0) noise_.emplace(perturbation.weight_noise, layout, options);
}

void Disturbances::delay(WeightGradients& gradients, int stage) {
  if (!delays()) return;
  const at::NoGradGuard no_grad;
  gradients.prepare();
  if (gradients.discarded(stage)) {
    gradients_.push({});
  } else {
    gradients_.push(gradients.sums());
    if (gradients.loss_scale()) gradients.loss_scale()->updated();
  }
  gradients.clear();
  std::optional<TensorQueue::List> due;
  if (gradients_.size() > delay_) due = gradients_.pop();
  idle_ = !due.has_value();
  if (due) gradients.sums() = *std::move(due);
}

std::span<at::Tensor> Disturbances::evaluated(std::span<at::Tensor> buffers) {
  return statistics_.size() == 0 ? buffers : std::span<at::Tensor>(*statistics_.oldest());
}

void Disturbances::begin_forward(const Pass& pass, std::span<const at::Tensor> buffers) {
  if (lag_ == 0) return;
  if (open_ == 0) {
    const at::DisableRecordFunctionGuard unseen;  // what is queued is no activation of the pass
    statistics_.push(TensorQueue::List(buffers.begin(), buffers.end()));
    if (statistics_.size() > lag_) statistics_.pop();
  }
  open_ = (open_ + 1) % pass.microbatches;
}

NamedTensors Disturbances::state() const {
  NamedTensors all;
  if (delay_ > 0) all = gradients_.state();
  if (lag_ > 0) std::ranges::move(statistics_.state(), std::back_inserter(all));
  return all;
}

void Disturbances::restore(const NamedTensors& saved) {
  if (delay_ > 0) gradients_.restore(saved);
  if (lag_ > 0) statistics_.restore(saved);
}

}  // namespace pipewright
