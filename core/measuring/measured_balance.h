// SPDX-License-Identifier: Apache-2.0
/// The best cut for `pipeline.balance: time | memory` by a profile of the model.
#pragma once

#include "core/cost/stage_cut.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// The objective and limits of a cut into so many stages.
CutRules cut_rules(const Experiment& experiment, int stages);
/// The memory of each possible stage under the experiment's schedule with so many stages.
StageMemories stage_memories(const Experiment& experiment, const Profile& profile, int stages);

/// The experiment's layout, cut by `profile`, which must be of its model, unless its cut is known.
/// Throws Error{Experiment} if no cut keeps to the limits.
Layout cut_by(const Experiment& experiment, const Profile& profile);

}  // namespace pipewright
