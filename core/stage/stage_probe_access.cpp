// SPDX-License-Identifier: Apache-2.0
#include "core/stage/stage_probe_access.h"

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

void StageProbeAccess::record_gradients(std::vector<at::Tensor>* into) {
  stage_.gradients_.record(into);
}

std::vector<at::Tensor> StageProbeAccess::gradients_with(const With& with, const WeightKey& now,
                                                         int id, BackwardRequest request,
                                                         const Pass& pass,
                                                         const PassTargets& targets) {
  const KeptForward& slot = stage_.kept_.forward(id);
  const StageParts& parts = stage_.parts_;
  const WeightGradients& sums = stage_.gradients_;
  KeptForward beside{
      .keep = Keep::Graph, .head_gradient = slot.head_gradient, .head_scale = slot.head_scale};
  for (const at::Tensor& input : slot.inputs) beside.inputs.push_back(input.detach());
  Pass again = pass;
  again.format = stage_.parts_.options.dtype().toScalarType();
  again.recomputing = true;
  with.noise ? stage_.install(with.key, pass) : stage_.weights_.install(with.key);
  const auto leaves = stage_.weights_.leaves().first(stage_.main_parameters_);
  std::vector<at::Tensor> gradients(stage_.layout_.entries.size());
  {
    const at::AutoGradMode record(true);
    beside.outputs = stage_.run_layers(beside.inputs, again, /*adds=*/false);
    if (request.own_loss && parts.last)
      beside.loss = parts.loss->of_pass(beside.outputs[0], targets);
    const BackwardRoots roots = stage_.kept_.roots_of(beside, request);
    std::vector<at::Tensor> found;
    if (!roots.outputs.empty())
      found = torch::autograd::grad(roots.outputs, {leaves.begin(), leaves.end()}, roots.gradients,
                                    false, false, true);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].defined())
        gradients[i] = sums.widened(found[i].detach()).mul(request.scale / sums.scale());
  }
  stage_.install(now, pass);
  return gradients;
}

Tensors StageProbeAccess::inputs_of(int id) const {
  Tensors inputs;
  for (const at::Tensor& input : stage_.kept_.forward(id).inputs) inputs.push_back(input.detach());
  return inputs;
}

std::vector<at::Tensor> StageProbeAccess::leaves_of(const at::Tensor& flat) const {
  std::vector<at::Tensor> leaves;
  for (const FlatLayout::Entry& entry : stage_.layout_.entries)
    leaves.push_back(entry.view(flat).detach().set_requires_grad(true));
  return leaves;
}

Tensors StageProbeAccess::outputs_with(std::span<const at::Tensor> leaves, Tensors inputs,
                                       const Pass& pass) const {
  Pass again = pass;
  again.recomputing = true;
  again.deferred = nullptr;
  again.sums = nullptr;
  for (at::Tensor& input : inputs)
    input = input.is_floating_point() ? input.to(stage_.parts_.options) : input.to(stage_.device());
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& buffer : stage_.buffers_) buffers.push_back(buffer.clone());
  const std::size_t layers = stage_.layers_.size() - (stage_.parts_.head ? 1 : 0);
  for (std::size_t i = 0; i < layers; ++i) {
    const Stage::OwnedLayer& placed = stage_.layers_[i];
    inputs = placed.layer->forward_all(
        inputs, leaves.subspan(placed.first_parameter, placed.parameters),
        std::span(buffers).subspan(placed.first_buffer, placed.buffers), again);
  }
  return inputs;
}

at::Tensor StageProbeAccess::loss_of(const Tensors& outputs, const PassTargets& targets) const {
  return stage_.parts_.loss->of_pass(outputs[0], targets);
}

NamedTensors StageProbeAccess::state() const {
  NamedTensors all = stage_.named_state();
  for (auto& [name, tensor] : all) tensor = on_host(tensor);
  return all;
}

NamedTensors StageProbeAccess::divisors() const {
  NamedTensors all;
  const at::Tensor flat = stage_.parts_.optimizer->preconditioner(stage_.state_);
  if (!flat.defined()) return all;
  for (const FlatLayout::Entry& entry : stage_.layout_.entries)
    all.emplace_back(entry.name, on_host(entry.view(flat)));
  return all;
}

}  // namespace pipewright
