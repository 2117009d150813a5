// SPDX-License-Identifier: Apache-2.0
#include "core/stage/kept_forwards.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"

namespace pipewright {

KeptForwards::KeptForwards(int stage, bool last, bool channels_last,
                           std::span<const at::Tensor> leaves, WeightGradients& gradients)
    : stage_(stage),
      last_(last),
      channels_last_(channels_last),
      leaves_(leaves),
      gradients_(gradients) {}

KeptForward& KeptForwards::add(KeptForward forward) {
  const auto free = std::ranges::find(slots_, -1, &KeptForward::id);
  if (free == slots_.end()) return slots_.emplace_back(std::move(forward));
  return *free = std::move(forward);
}

KeptForward& KeptForwards::forward(int id) {
  const auto slot = std::ranges::find(slots_, id, &KeptForward::id);
  PIPEWRIGHT_CHECK(id >= 0 && slot != slots_.end(), "stage ", stage_, " keeps no forward ", id);
  return *slot;
}

void KeptForwards::move_on(int numbers) {
  for (KeptForward& slot : slots_)
    if (slot.id >= 0) slot.id += numbers;
}

at::Tensor KeptForwards::arrived(const at::Tensor& value) const {
  return channels_last_ ? laid_out(value, true) : value;
}

BackwardRoots KeptForwards::roots_of(const KeptForward& slot, BackwardRequest& request) const {
  const double scale = gradients_.scale();
  if (request.own_loss && last_) {
    const double factor = request.factor * scale;
    return {{slot.loss},
            {factor == 1 && !request.half_of ? at::Tensor() : at::full_like(slot.loss, factor)}};
  }
  if (request.own_loss) {  // the head reads the first output only
    request.gradients.assign(slot.outputs.size(), at::Tensor());
    request.gradients[0] = slot.head_scale == scale
                               ? slot.head_gradient
                               : slot.head_gradient.mul(scale / slot.head_scale);
    request.bypass.clear();
  }
  BackwardRoots roots;
  const std::size_t first = slot.outputs.size() - request.behind - request.bypass.size();
  std::size_t next = 0;
  for (std::size_t i = 0; i < slot.outputs.size(); ++i) {
    const at::Tensor& output = slot.outputs[i];
    if (!output.is_floating_point()) continue;
    const bool bypass = i - first < request.bypass.size();
    const at::Tensor& gradient = bypass ? request.bypass[i - first] : request.gradients[next++];
    if (!output.requires_grad() || !gradient.defined()) continue;
    roots.outputs.push_back(output);
    roots.gradients.push_back(arrived(gradient));
  }
  return roots;
}

Tensors KeptForwards::backward(int id, BackwardRequest request) {
  KeptForward& slot = forward(id);
  PIPEWRIGHT_CHECK(slot.keep == Keep::Graph, "forward ", id, " has not been recomputed");
  const BackwardRoots roots = roots_of(slot, request);
  const std::vector<at::Tensor> results = differentiate(slot, roots, request);
  Tensors gradients = request.input_gradient ? of_inputs(slot, results) : Tensors();
  gradients_.note_sent(gradients);
  if (request.last) finish_walk(slot);
  return gradients;
}

/// Runs autograd. Returns the gradients of the inputs that have one; those of weights have been
/// added, or are kept as a half.
std::vector<at::Tensor> KeptForwards::differentiate(KeptForward& slot, const BackwardRoots& roots,
                                                    const BackwardRequest& request) {
  std::vector<at::Tensor> inputs;
  if (request.input_gradient)
    for (const at::Tensor& input : slot.inputs)
      if (input.requires_grad()) inputs.push_back(input);
  if (request.half_of) {
    InputHalf half = backward_of_inputs(roots.outputs, roots.gradients, inputs, leaves_);
    slot.halves.push_back({*request.half_of, gradients_.scale(), std::move(half.weights)});
    return std::move(half.of_inputs);
  }
  std::vector<at::Tensor> wanted(leaves_.begin(), request.learn ? leaves_.end() : leaves_.begin());
  const auto learned = static_cast<std::ptrdiff_t>(wanted.size());
  wanted.insert(wanted.end(), inputs.begin(), inputs.end());
  if (roots.outputs.empty() || wanted.empty()) return {};
  const WeightGradients::Adding adding(gradients_, request.scale / gradients_.scale());
  const bool keep_graph = !request.last || !slot.halves.empty();
  auto results =
      torch::autograd::grad(roots.outputs, wanted, roots.gradients, keep_graph, false, true);
  results.erase(results.begin(), results.begin() + learned);
  return results;
}

/// One gradient for each input; zeros where nothing depends on it, undefined where it has none.
Tensors KeptForwards::of_inputs(const KeptForward& slot,
                                const std::vector<at::Tensor>& results) const {
  Tensors all;
  auto result = results.begin();
  for (const at::Tensor& input : slot.inputs) {
    all.emplace_back();
    if (!input.requires_grad()) continue;
    const at::Tensor gradient = result == results.end() ? at::Tensor() : *result++;
    all.back() = gradient.defined() ? laid_out(gradient, channels_last_) : at::zeros_like(input);
  }
  return all;
}

/// Called after the last backward(): keeps only what the outstanding weight halves need.
void KeptForwards::finish_walk(KeptForward& slot) {
  if (slot.halves.empty()) {
    slot = KeptForward{};
    return;
  }
  for (KeptHalf& half : slot.halves) half.weights.release_inputs(leaves_);
  KeptForward rest{.id = slot.id, .halves = std::move(slot.halves), .walked = true};
  slot = std::move(rest);
}

void KeptForwards::backward_weight(int id, int loss, double scale) {
  KeptForward& slot = forward(id);
  const auto half = std::ranges::find(slot.halves, loss, &KeptHalf::loss);
  PIPEWRIGHT_CHECK(half != slot.halves.end(), "stage ", stage_, " has no half of loss ", loss);
  {
    const WeightGradients::Adding adding(gradients_, scale / half->loss_scale);
    half->weights.run(leaves_, !slot.walked);
  }
  slot.halves.erase(half);
  if (slot.walked && slot.halves.empty()) slot = KeptForward{};
}

}  // namespace pipewright
