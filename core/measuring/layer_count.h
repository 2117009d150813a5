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

/// Weights that layers lend to later ones (lend() in core/nn/layers.h), put aside in between: they
/// are no part of what crosses a boundary with each micro-batch.
class LentTensors {
 public:
  void give(const Layer& to, Tensors& inputs) {
    if (to.skips().borrows) inputs.push_back(lent_.pop_back_val());
  }
  void take(const Layer& from, Tensors& outputs) {
    if (from.skips().lent > 0) lent_.push_back(outputs.pop_back_val());
  }

 private:
  Tensors lent_;
};

/// Operations and bytes of a layer on inputs `x` of the meta device, which are replaced by its
/// outputs. Times, and the memory of passes, are left at 0. No graph must be recorded.
LayerCost count_layer(const Layer& layer, Tensors& x, const Experiment& experiment);

}  // namespace pipewright
