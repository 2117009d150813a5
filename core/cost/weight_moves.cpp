// SPDX-License-Identifier: Apache-2.0
#include "core/cost/weight_moves.h"

namespace pipewright {

void complete_weight_times(Profile& profile, const std::vector<WeightMoves>& moves) {
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    LayerCost& layer = profile.layers[i];
    if (layer.prediction > 0) continue;
    const double one = layer.update / moves[i].update;
    layer.prediction = moves[i].prediction * one;
    layer.fused_prediction = moves[i].fused_prediction * one;
  }
}

}  // namespace pipewright
