// SPDX-License-Identifier: Apache-2.0
/// What the layout of a training leaves to measurements: the memory format, then the cut.
#pragma once

#include "core/experiment/experiment.h"
#include "core/measuring/shared_profile.h"
#include "core/runtime/team.h"

namespace pipewright {

/// Decides what `pipeline.memory_format: auto` and `pipeline.balance: time | memory` leave open.
/// Collective, except that it does nothing if nothing is open. Throws Error{Experiment}.
void settle_layout(Experiment& experiment, const LayoutRequest& request, Team& team);

}  // namespace pipewright
