// SPDX-License-Identifier: Apache-2.0
/// The copies of activations between devices and the memory of their hosts, beside a worker's other
/// actions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"
#include "core/simulation/span.h"

namespace pipewright {

/// Throws if the schedule has host copies and the hardware does not say how fast they are.
void need_speed_of_host_copies(const Schedule& schedule, const Hardware& hardware);

/// The way of each worker to its host's memory, and back. It keeps references.
class HostLinks {
 public:
  HostLinks(const ProvedSchedule& proved, std::span<const StageCost> costs,
            const Hardware& hardware);

  /// Begins an offload or a fetch to which a worker comes at that time. Returns its span.
  Span copy(int worker, const Action& action, double time, HostCopies& report);
  /// When the activations that a pass needs are on the device again; 0 if they never left it.
  double fetched(const Action& pass) const;

 private:
  const PassSlots& slots_;
  const std::span<const StageCost> costs_;
  const Hardware& hardware_;
  std::vector<std::array<double, 2>> free_;  ///< [worker] → when each direction is free
  std::vector<double> on_device_;  ///< [forward] → the end of the last copy of what it keeps
};

}  // namespace pipewright
