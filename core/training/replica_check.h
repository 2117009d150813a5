// SPDX-License-Identifier: Apache-2.0
/// Replicas of a stage hold the same weights, to the last bit, wherever the pipeline is drained:
/// they begin with the same ones and apply the same sums of gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/team.h"
#include "core/stage/stage.h"
#include "core/training/plan.h"

namespace pipewright {

/// Collective: compares the replicas' weights by checksums, which each device computes by itself in
/// one pass over its weights. `stages` are the plan's; those of other processes are null. Throws
/// Error{Bug} in every process if they differ after so many mini-batches: training went wrong.
void check_replicas(const Plan& plan, Team& team, const std::vector<std::unique_ptr<Stage>>& stages,
                    std::int64_t minibatches);

}  // namespace pipewright
