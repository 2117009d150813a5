// SPDX-License-Identifier: Apache-2.0
#include "core/training/gathered.h"

#include <utility>

#include "core/runtime/processes/bring_tensors.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

using HeldStages = std::vector<std::unique_ptr<Stage>>;

/// `tensors_of` says what a stage gives.
template <class TensorsOf>
TensorFile gathered(const Plan& plan, Team& team, const HeldStages& stages,
                    const TensorsOf& tensors_of) {
  TensorFile file;
  for (int stage = 0; stage < plan.experiment->pipeline.stages; ++stage) {
    NamedTensors tensors;
    if (const auto& held = stages[static_cast<std::size_t>(stage)]) tensors = tensors_of(*held);
    if (team.size() > 1)
      tensors = bring_tensors(team, plan.training.schedule.shape.worker_of(stage, 0), tensors);
    for (auto& named : tensors) file.tensors.push_back(std::move(named));
  }
  return file;
}

}  // namespace

TensorFile gathered_weights(const Plan& plan, Team& team, const HeldStages& stages) {
  return gathered(plan, team, stages, [](Stage& stage) { return stage.named_state(); });
}

TensorFile gathered_preconditioner(const Plan& plan, Team& team, const HeldStages& stages) {
  return gathered(plan, team, stages, [&](Stage& stage) {
    NamedTensors tensors;
    if (const at::Tensor all = plan.experiment->optimizer->preconditioner(stage.optimizer_state());
        all.defined())
      for (const FlatLayout::Entry& entry : stage.layout().entries)
        tensors.emplace_back(entry.name, entry.of(all));
    return tensors;
  });
}

}  // namespace pipewright
