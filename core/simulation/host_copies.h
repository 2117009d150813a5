// SPDX-License-Identifier: Apache-2.0
/// The copies of activations between devices and the memory of their hosts, beside a worker's other
/// actions. An Offload begins when its worker has come to it and the earlier ones have crossed; so
/// does a Fetch, and not before its Offload has ended. The worker goes on meanwhile, and a pass
/// that needs the activations waits for the Fetch. They are on the device until the Offload has
/// ended, and again when the Fetch begins.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"
#include "core/simulation/network.h"
#include "core/simulation/span.h"

namespace pipewright {

/// The figures of a worker's host copies.
struct HostCopies {
  Traffic offloaded;            ///< to the host's memory; as much comes back
  double waiting = 0;           ///< s in which passes waited for nothing but a fetch
  std::int64_t most_bytes = 0;  ///< in the host's memory at once, those under way included
};

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
