// SPDX-License-Identifier: Apache-2.0
#include "core/cost/weight_moves.h"

namespace pipewright {

void complete_weight_times(Profile& profile, const WeightMoves& moves) {
  for (LayerCost& layer : profile.layers) {
    if (layer.prediction > 0) continue;
    const double one = layer.update / moves.update;
    layer.prediction = moves.prediction * one;
    layer.fused_prediction = moves.fused_prediction * one;
  }
}

}  // namespace pipewright
