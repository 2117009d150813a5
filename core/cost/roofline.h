/// Times from counts: what a profile counted on the meta device would take on a device of known
/// rates (Williams, Waterman and Patterson, 2009: the slower of computing and moving).
#pragma once

#include "core/cost/profile.h"

namespace pipewright {

struct DeviceRates {
  bool known() const { return flops > 0 && bandwidth > 0; }

  double flops = 0;       ///< operations per second that a device is sold with
  double bandwidth = 0;   ///< bytes per second of its memory
  double efficiency = 1;  ///< part of `flops` that large layers reach, in (0, 1]
};

/// A forward computes its operations and moves its input, its parameters, and what it makes: its
/// output or what it keeps, of which that is a part, if it is more; either half of a backward does
/// as much again; an update moves its parameters five times (reads weight, gradient and velocity,
/// writes weight and velocity). Requires rates > 0.
Profile with_modelled_times(Profile counted, const DeviceRates& rates);

}  // namespace pipewright
