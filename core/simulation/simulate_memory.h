// SPDX-License-Identifier: Apache-2.0
/// The bytes of a simulation: what each worker holds, and when.
#pragma once

#include <span>

#include "core/simulation/simulate.h"
#include "core/simulation/simulate_clock.h"

namespace pipewright {

/// Fills in the memory of `simulation.workers`. `versions` are those of the schedule.
void count_memory(const Schedule& schedule, const PassSlots& slots,
                  std::span<const StageCost> costs, const Versions& versions,
                  const ClockTimes& times, const SimulationOptions& options,
                  Simulation& simulation);

}  // namespace pipewright
