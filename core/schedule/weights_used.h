// SPDX-License-Identifier: Apache-2.0
/// The weights that the passes of one mini-batch use: the rows of tables and of a drawing.
#pragma once

#include <vector>

#include "core/schedule/prove.h"

namespace pipewright {

struct PassWeights {
  Action action;
  WeightKey key;
  int applied_to = 0;  ///< the version its gradient is applied to; −1 without an update
};

/// One row per pass of the mini-batch, by stage and replica.
std::vector<PassWeights> weights_used(const ProvedSchedule& proved, int minibatch);

}  // namespace pipewright
