// SPDX-License-Identifier: Apache-2.0
#include "core/cost/cost.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/wording.h"

namespace pipewright {

StageCost cost_of_slice(StageCost cost, int slices) {
  if (slices == 1) return cost;
  // Backwards that add make gradients as large as the weights, however short a slice is.
  const std::int64_t gradient = std::max<std::int64_t>(0, cost.peak_adding_bytes - cost.peak_bytes);
  for (double StageCost::*seconds :
       {&StageCost::forward, &StageCost::backward, &StageCost::backward_input,
        &StageCost::backward_weight, &StageCost::backward_sent, &StageCost::backward_input_sent,
        &StageCost::head, &StageCost::coding_forward, &StageCost::coding_backward})
    cost.*seconds /= slices;
  for (auto seconds : {&StageCost::fused_pair, &StageCost::recompute})
    if (cost.*seconds) *(cost.*seconds) /= slices;
  for (std::int64_t StageCost::*bytes :
       {&StageCost::input_bytes, &StageCost::output_bytes, &StageCost::activation_bytes,
        &StageCost::half_bytes, &StageCost::peak_bytes, &StageCost::freed_bytes,
        &StageCost::peak_bare_bytes})
    cost.*bytes = (cost.*bytes + slices - 1) / slices;
  cost.peak_adding_bytes = cost.peak_bytes + gradient;
  return cost;
}

double seconds_of(const StageCost& cost, ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward: return cost.forward + cost.coding_forward;
    case ActionKind::Recompute: return cost.recompute.value_or(cost.forward);
    case ActionKind::Head: return cost.head;
    case ActionKind::Backward: return cost.backward + cost.coding_backward;
    case ActionKind::BackwardInput: return cost.backward_input + cost.coding_backward;
    case ActionKind::BackwardWeight: return cost.backward_weight;
    case ActionKind::Update: return cost.update;
    case ActionKind::Reduce: return cost.coding_reduce;
    case ActionKind::Offload:
    case ActionKind::Fetch: return 0;
  }
  return 0;
}

void add_layer(StageCost& stage, const LayerCost& layer) {
  // Peaks so far, activations included: of a forward, of a backward that creates the gradients, and
  // of one that adds to them.
  std::int64_t forward = stage.activation_bytes + stage.peak_bytes;
  std::int64_t first = forward + stage.gradient_bytes() - stage.freed_bytes;
  std::int64_t adding = stage.activation_bytes + stage.peak_adding_bytes;
  const std::int64_t bare =
      stage.output_bytes + std::max(layer.output_bytes, layer.activation_bytes) + layer.peak_bytes;
  stage.forward += layer.forward;
  stage.backward += layer.backward;
  stage.backward_input += layer.backward_input;
  stage.backward_weight += layer.backward_weight;
  stage.update += layer.update;
  stage.new_version += layer.new_version;
  stage.prediction += layer.prediction;
  stage.fused_prediction = stage.fused_prediction.value_or(0) + layer.fused_prediction;
  stage.output_bytes = layer.output_bytes;
  stage.activation_bytes += layer.activation_bytes;
  stage.half_bytes += layer.half_bytes;
  stage.parameter_bytes += layer.parameter_bytes;
  stage.copy_bytes += layer.copy_bytes;
  stage.buffer_bytes += layer.buffer_bytes;
  const std::int64_t here = stage.activation_bytes + layer.peak_bytes;
  forward = std::max(forward, here);
  first = std::max(first, here) + layer.parameter_bytes - layer.copy_bytes;
  adding = std::max({adding, here, stage.activation_bytes + layer.peak_adding_bytes});
  // Tensors that pass through a layer are in both outputs, so this bound can exceed the peak of a
  // forward that keeps everything.
  stage.peak_bare_bytes = std::min(std::max(stage.peak_bare_bytes, bare), forward);
  stage.peak_bytes = forward - stage.activation_bytes;
  stage.peak_adding_bytes = adding - stage.activation_bytes;
  stage.freed_bytes = forward + stage.gradient_bytes() - first;
}

void add_head(StageCost& stage, const LayerCost& head) {
  stage.head += head.forward + head.backward;
  stage.update += head.update;
  stage.new_version += head.new_version;
  stage.prediction += head.prediction;
  stage.fused_prediction = stage.fused_prediction.value_or(0) + head.fused_prediction;
  stage.parameter_bytes += head.parameter_bytes;
  stage.copy_bytes += head.copy_bytes;
  stage.buffer_bytes += head.buffer_bytes;
  stage.head_memory = {.parameter_bytes = head.parameter_bytes,
                       .copy_bytes = head.copy_bytes,
                       .kept_bytes = head.activation_bytes,
                       .peak_bytes = head.peak_bytes,
                       .peak_adding_bytes = head.peak_adding_bytes};
}

SentGradient sent_gradient(std::span<const LayerCost> layers) {
  SentGradient sent;
  for (const LayerCost& layer : layers) {
    sent.backward += std::max(0.0, layer.backward - layer.backward_weight);
    sent.backward_input += layer.backward_input;
    if (layer.parameters > 0) break;
  }
  return sent;
}

std::vector<StageCost> stage_costs(const Profile& profile, std::span<const std::int64_t> balance,
                                   const AuxiliaryHeads& heads) {
  const auto layers = static_cast<std::int64_t>(profile.layers.size());
  const bool positive = std::ranges::all_of(balance, [](std::int64_t count) { return count > 0; });
  const std::int64_t cut = std::accumulate(balance.begin(), balance.end(), std::int64_t{0});
  if (!positive || cut != layers)
    throw Error(ErrorKind::Experiment,
                concat("the profile of ", profile.model, " has ", counted(layers, "layer"),
                       ", but the stages have ", cut,
                       "; measure this experiment's model with `pipewright profile`"));
  std::vector<StageCost> stages;
  auto layer = profile.layers.begin();
  std::int64_t arriving = profile.input_bytes;
  for (const std::int64_t count : balance) {
    StageCost& stage = stages.emplace_back();
    stage.input_bytes = arriving;
    const SentGradient sent = sent_gradient(std::span(&*layer, static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) add_layer(stage, *layer++);
    arriving = stage.output_bytes;
    if (stages.size() > 1) {
      stage.backward_sent = sent.backward;
      stage.backward_input_sent = sent.backward_input;
    } else {
      stage.backward = std::max(0.0, stage.backward - sent.backward);
      stage.backward_input = std::max(0.0, stage.backward_input - sent.backward_input);
    }
    const auto before = static_cast<std::size_t>(layer - profile.layers.begin()) - 1;
    if (std::ranges::binary_search(heads.stages, static_cast<int>(stages.size()) - 1))
      add_head(stage, heads.behind[before]);
  }
  return stages;
}

}  // namespace pipewright
