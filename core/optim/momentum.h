// SPDX-License-Identifier: Apache-2.0
/// The option `momentum` of optimizers that have one.
#pragma once

#include "core/config/options.h"

namespace pipewright {

/// A factor μ in [0, 1): with 1 the velocity would never fade, and beyond it grow without a limit.
inline double read_momentum(Options& options, double fallback = 0) {
  const double momentum =
      options.number("momentum", fallback, "Momentum factor μ; less than 1.", kFraction);
  if (momentum == 1)
    options.problem("momentum", "is 1; expected less, or the velocity would never fade");
  return momentum;
}

}  // namespace pipewright
