// SPDX-License-Identifier: Apache-2.0
/// What an optimizer's work on the weights moves through memory, from which its time follows: a
/// fused rule reads each tensor once, and writes each once. But for products of matrices it
/// computes next to nothing.
#pragma once

#include <vector>

#include "core/cost/profile.h"

namespace pipewright {

/// How many tensors as large as a layer's weights are read and written. The narrow copies of mixed
/// precision are written besides. An update that writes a new version reads and writes as many as
/// one in place: it reads the old weights either way. The defaults are those of SGD with momentum.
struct WeightMoves {
  double update = 5;            ///< reads weights, gradient and velocity, writes the first and last
  double prediction = 3;        ///< reads weights and velocity, writes the prediction
  double fused_prediction = 1;  ///< of an update that makes it, too: only the prediction is written
};

/// Fills in the seconds of predictions where they were not measured, from those of the update,
/// which are proportional to what it moves; `moves` has them layer by layer.
void complete_weight_times(Profile& profile, const std::vector<WeightMoves>& moves);

}  // namespace pipewright
