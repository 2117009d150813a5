// SPDX-License-Identifier: Apache-2.0
/// Counts what one layer costs from shapes alone, on the meta device.
#pragma once

#include <cstdint>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"
#include "core/nn/layer.h"

namespace pipewright {

/// Bytes of the tensors at a boundary between layers.
std::int64_t boundary_bytes(const Tensors& tensors);

/// Operations and bytes of a layer on inputs `x` of the meta device, which are replaced by its
/// outputs. Times, and the memory of passes, are left at 0. No graph must be recorded.
LayerCost count_layer(const Layer& layer, Tensors& x, const Experiment& experiment);

}  // namespace pipewright
