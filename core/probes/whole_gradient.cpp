// SPDX-License-Identifier: Apache-2.0
#include "core/probes/whole_gradient.h"

#include <iterator>

#include "core/base/as_size.h"
#include "core/stage/stage_probe_access.h"
#include "core/tensors/torch.h"

namespace pipewright {

void WholeGradient::begins(const Observer::Backward& about_to_run) {
  const int stage = about_to_run.stage.index();
  Open& open = open_[about_to_run.instruction.action.minibatch];
  if (open.stages.empty()) {
    open.stages.resize(as_size(stages_));
    open.weights.resize(as_size(stages_));
    open.added.resize(as_size(stages_));
  }
  open.stages[as_size(stage)] = &about_to_run.stage;
  open.weights[as_size(stage)] = about_to_run.stage.weights().latest().clone();
  if (stage == stages_ - 1) open.targets = about_to_run.targets();
  if (stage > 0) return;
  open.inputs = StageProbeAccess(about_to_run.stage).inputs_of(about_to_run.id);
  open.pass = about_to_run.pass;
}

void WholeGradient::ended(const Instruction& pass, const StageProbe::Added& added,
                          const Finding& found) {
  const auto at = open_.find(pass.action.minibatch);
  if (at == open_.end()) return;
  Open& open = at->second;
  for (const at::Tensor& gradient : added.gradients)
    open.added[as_size(pass.action.stage)].push_back(
        gradient.defined() ? gradient / added.weighting.factor : gradient);
  if (++open.ended < stages_) return;
  Gradients scheme;
  for (Gradients& of_stage : open.added) std::ranges::move(of_stage, std::back_inserter(scheme));
  const GradientComparison compared = compare(scheme, at_newest_weights(open));
  const Finding of_model = found.of_whole_model();
  of_model("cosine", compared.cosine);
  of_model("norm_ratio", compared.norm_ratio);
  open_.erase(at);
}

Gradients WholeGradient::at_newest_weights(const Open& open) const {
  const at::AutoGradMode record(true);
  Tensors values = open.inputs;
  std::vector<at::Tensor> leaves;
  for (int k = 0; k < stages_; ++k) {
    StageProbeAccess stage(*open.stages[as_size(k)]);
    const std::vector<at::Tensor> own = stage.leaves_of(open.weights[as_size(k)]);
    values = stage.outputs_with(own, std::move(values), open.pass);
    leaves.insert(leaves.end(), own.begin(), own.end());
  }
  const at::Tensor loss = StageProbeAccess(*open.stages.back()).loss_of(values, open.targets);
  return torch::autograd::grad({loss}, leaves, {}, false, false, /*allow_unused=*/true);
}

}  // namespace pipewright
