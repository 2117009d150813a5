// SPDX-License-Identifier: Apache-2.0
/// The costs of updates and predictions of weights besides passes: tensors moved and operators
/// started, by count, and the times of one layer's, by measuring.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/cost/weight_moves.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// What the experiment's optimizer moves under the predictions of its scheme, layer by layer: an
/// update reads weights, gradient and each tensor of its state, and writes weights and state. For
/// PredictionRule::Lookahead it writes the last gradient, too; for Drift it moves ten tensors more,
/// because that rule is not fused. A null layer has the defaults.
std::vector<WeightMoves> weight_moves(const Experiment& experiment,
                                      const std::vector<LayerPtr>& layers);

/// Counts update_flops and update_kernels of a layer with these parameters: the matrix products of
/// one update, and its operators on a device that starts them one by one. It is the second update,
/// because the first may be another one; what an optimizer does every so many updates is left out.
void count_update(LayerCost& cost, const Optimizer& optimizer, const Layer& layer,
                  const std::vector<at::Tensor>& parameters);

/// Measures new_version, prediction and fused_prediction of a layer with these parameters on their
/// device: medians of so many repetitions or, with 0, of 3 to 50 within `seconds`, after a warm-up.
/// The times of an update in place are taken off, and what remains is at least 0.
void measure_weight_times(LayerCost& cost, const Optimizer& optimizer, const Layer& layer,
                          const std::vector<at::Tensor>& parameters, int repetitions,
                          double seconds);

}  // namespace pipewright
