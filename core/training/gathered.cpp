// SPDX-License-Identifier: Apache-2.0
#include "core/training/gathered.h"

#include <utility>

#include "core/processes/bring_tensors.h"
#include "core/tensors/torch.h"

namespace pipewright {

TensorFile gathered_tensors(const Plan& plan, Team& team,
                            const std::function<NamedTensors(int stage)>& held) {
  TensorFile file;
  for (int stage = 0; stage < plan.experiment->pipeline.stages; ++stage) {
    NamedTensors tensors = held(stage);
    if (team.size() > 1)
      tensors = bring_tensors(team, plan.training.schedule.shape.worker_of(stage, 0), tensors);
    for (auto& named : tensors) file.tensors.push_back(std::move(named));
  }
  return file;
}

TensorFile gathered_weights(const Plan& plan, Team& team,
                            const std::vector<std::unique_ptr<Stage>>& stages) {
  return gathered_tensors(plan, team, [&](int stage) {
    const auto& held = stages[static_cast<std::size_t>(stage)];
    return held ? held->named_state() : NamedTensors();
  });
}

}  // namespace pipewright
