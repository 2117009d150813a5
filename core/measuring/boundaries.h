// SPDX-License-Identifier: Apache-2.0
/// The tensors that cross the boundaries between stages, as tensors without memory.
#pragma once

#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The outputs of each stage but the last, skip tensors included and lent weights left out, for
/// `inputs` on the meta device. No tensor has memory.
std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs);
/// The outputs of the whole model, likewise.
Tensors outputs_on_meta(const Experiment& experiment, Tensors inputs);

}  // namespace pipewright
