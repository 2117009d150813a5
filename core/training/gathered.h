// SPDX-License-Identifier: Apache-2.0
/// Gathers tensors of all stages of a training in process 0. Collective: every process of the team
/// calls, and only process 0 gets them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/team.h"
#include "core/stage/stage.h"
#include "core/tensor_files/safetensors.h"
#include "core/training/plan.h"

namespace pipewright {

/// Parameters and buffers of replica 0, in layer order. `stages` are the plan's; those of other
/// processes are null.
TensorFile gathered_weights(const Plan& plan, Team& team,
                            const std::vector<std::unique_ptr<Stage>>& stages);

/// The tensors of all stages. `held(stage)` returns those of a stage that this process holds, and
/// none of others.
TensorFile gathered_tensors(const Plan& plan, Team& team,
                            const std::function<NamedTensors(int stage)>& held);

}  // namespace pipewright
