// SPDX-License-Identifier: Apache-2.0
/// Counts what auxiliary heads cost, on the meta device.
#pragma once

#include "core/cost/cost.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// The stages at which the experiment's scheme wants an auxiliary head if there are so many, and
/// what a head behind each layer but the last would cost: operations, bytes, and the memory of its
/// pass; no times. Its activation_bytes are the gradient of the output that it classifies. All 0
/// where the model has no head. Nothing is counted for a scheme without heads.
AuxiliaryHeads count_heads(const Experiment& experiment, int stages);

}  // namespace pipewright
