// SPDX-License-Identifier: Apache-2.0
/// The plan that a measured run is compared with: its schedule with the medians of its own times.
#pragma once

#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "core/traces/idle.h"

namespace pipewright {

/// Simulates the schedule with the medians of what its actions took: what the run would have been
/// without stragglers and transfers.
Simulation planned(const ProvedSchedule& proved, const Spans& spans);

}  // namespace pipewright
