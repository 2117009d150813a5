// SPDX-License-Identifier: Apache-2.0
/// The bytes of a simulation: what each worker holds, and when.
#pragma once

#include <span>

#include "core/simulation/simulate.h"
#include "core/simulation/simulate_clock.h"

namespace pipewright {

/// Fills in the memory of `simulation.workers`.
void count_memory(const ProvedSchedule& proved, std::span<const StageCost> costs,
                  const ClockTimes& times, const SimulationOptions& options,
                  Simulation& simulation);

}  // namespace pipewright
