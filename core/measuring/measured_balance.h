// SPDX-License-Identifier: Apache-2.0
/// The cut for `pipeline.balance: time | memory`. Process 0 decides it once, from an existing
/// profile or one that it measures; from then on it is a list like any other.
#pragma once

#include "core/cost/stage_cut.h"
#include "core/experiment/experiment.h"
#include "core/measuring/shared_profile.h"
#include "core/runtime/team.h"

namespace pipewright {

/// The objective and limits of a cut into so many stages.
CutRules cut_rules(const Experiment& experiment, int stages);
/// Number of tensors of the weights' size that a stage keeps for its updates, predictions and
/// perturbations.
int optimizer_slots(const Experiment& experiment, const Schedule& schedule);
/// Bytes of the optimizer's tables (Optimizer::tables) for each layer; empty if it has none.
std::vector<std::int64_t> table_bytes(const Experiment& experiment);
/// The same for each stage; empty before the model is cut, too.
std::vector<std::int64_t> table_bytes_of_stages(const Experiment& experiment);
/// The memory of each possible stage under the experiment's schedule with so many stages.
StageMemories stage_memories(const Experiment& experiment, const Profile& profile, int stages);

/// Cuts the experiment by `profile`, which must be of its model. Does nothing if its cut is known.
void cut_by(Experiment& experiment, const Profile& profile);

/// Decides the cut and puts it into `balance` and `resolved`. Collective, except that it does
/// nothing if the cut is known.
void settle_balance(Experiment& experiment, const LayoutRequest& request, Team& team);

}  // namespace pipewright
