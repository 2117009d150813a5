// SPDX-License-Identifier: Apache-2.0
/// Times from counts: what a profile counted on the meta device would take on a device of known
/// rates. The roofline model takes the slower of computing and moving bytes (Williams, Waterman and
/// Patterson, 2009).
#pragma once

#include "core/cost/profile.h"
#include "core/cost/weight_moves.h"

namespace pipewright {

struct DeviceRates {
  bool known() const { return flops > 0 && bandwidth > 0; }

  double flops = 0;           ///< peak operations per second in float32, as in the data sheet
  double bfloat16_flops = 0;  ///< the same of layers in bfloat16 or float16; 0: as in float32
  double bandwidth = 0;       ///< bytes per second of its memory
  double efficiency = 1;      ///< fraction of the peak that large layers reach, in (0, 1]
  double launch = 0;          ///< s that its host takes to start one operator on it

  bool operator==(const DeviceRates&) const = default;
};

/// Fills in the seconds of each layer. A forward computes its operations and moves its input, its
/// parameters (in mixed precision their narrow copies), and the larger of its output and its
/// activations. Each half of a backward takes as long as the forward; a layer without parameters
/// has no weight half. An update and a prediction move the tensors that `moves` says and write the
/// copies. The host starts operators while the device computes those before, so forwards and
/// updates take at least `launch` for each of their kernels. Where operators are launched, nothing
/// is fused: the prediction that an update makes moves as much as one by itself, as in the executor
/// on any device but a CPU. Requires rates > 0.
Profile with_modelled_times(Profile counted, const DeviceRates& rates,
                            const WeightMoves& moves = {});

}  // namespace pipewright
