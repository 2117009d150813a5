// SPDX-License-Identifier: Apache-2.0
/// Why the workers of a simulation are idle: because of the schedule, because its stages take
/// unequal times, or because of transfers.
#pragma once

#include <span>

#include "core/cost/cost.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// Shares of all workers' time until the makespan, which add up to Simulation::bubble. A cause's
/// share is of the seconds that it adds, so that where transfers take most of the time, most of the
/// bubble is theirs.
struct IdleParts {
  double schedule = 0;   ///< idle for as long if all stages took equal times and transfers none
  double stages = 0;     ///< because stages take unequal times, or devices are unequally fast
  double transfers = 0;  ///< because messages and reductions take time
};

/// The parts of the bubble of `simulation`, which is of this schedule with these costs on this
/// hardware. Simulates the schedule twice more: with the mean of all stages' costs on equal devices
/// with free transfers, and with its own costs and devices with free transfers.
IdleParts idle_parts(const ProvedSchedule& proved, std::span<const StageCost> costs,
                     const Hardware& hardware, const Simulation& simulation);

}  // namespace pipewright
