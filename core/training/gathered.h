// SPDX-License-Identifier: Apache-2.0
/// What the stages of a training hold, of the whole model and in process 0. Collective: every
/// process of the team calls, and only process 0 gets all.
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

/// What `held(stage)` returns for the stages that this process holds; it returns nothing for
/// others.
TensorFile gathered_tensors(const Plan& plan, Team& team,
                            const std::function<NamedTensors(int stage)>& held);

}  // namespace pipewright
