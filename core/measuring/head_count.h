// SPDX-License-Identifier: Apache-2.0
/// What auxiliary heads cost: counted on the meta device, the memory of their passes measured, too.
#pragma once

#include "core/cost/cost.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// The head behind a layer, with the name that one has in a stage; null if the model has none.
LayerPtr head_of(const Experiment& experiment, std::size_t layer);

/// The stages at which the experiment's scheme wants an auxiliary head if there are so many, and
/// what a head behind each layer but the last would cost: operations, bytes, and the memory of its
/// pass; no times. Its activation_bytes are the gradient of the output that it classifies. All 0
/// where the model has no head. Nothing is counted for a scheme without heads.
AuxiliaryHeads count_heads(const Experiment& experiment, int stages);

/// The same of the head behind layer `layer`, on that layer's `inputs` and its first `output`. The
/// memory of its pass is that of their device: on the meta device without workspaces of kernels.
LayerCost head_memory(const Experiment& experiment, std::size_t layer, const Tensors& inputs,
                      const at::Tensor& output, const at::Tensor& targets);

/// Gives heads the memory of passes that the profile has measured. Others keep what was counted.
void take_peaks(AuxiliaryHeads& heads, const Profile& profile);

}  // namespace pipewright
