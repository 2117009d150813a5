// SPDX-License-Identifier: Apache-2.0
/// The plan that a measured run is compared with: its schedule with the medians of its own times.
#pragma once

#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "core/traces/idle.h"

namespace pipewright {

/// Costs of stages: the median of what actions of a kind computed, and of their codecs; of a
/// reduction the shortest, whose worker waited for nobody. Links take no time.
std::vector<StageCost> measured_costs(const Schedule& schedule, const Spans& spans);

/// Simulates the schedule with those costs: what the run would have been without stragglers and
/// transfers.
Simulation planned(const ProvedSchedule& proved, const Spans& spans);

}  // namespace pipewright
