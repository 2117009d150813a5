// SPDX-License-Identifier: Apache-2.0
/// The clock of a simulation: when each action begins and ends.
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// The times that the clock found, from which memory is counted.
struct ClockTimes {
  /// The spans of host copies lie beside those of the worker's other actions.
  std::vector<std::vector<Span>> spans;
  /// [PassSlots::forward()] → when that output arrives at the stage that takes it.
  std::vector<double> forward_arrivals;
  /// [PassSlots::backward()] → when that input gradient arrives there.
  std::vector<double> backward_arrivals;
};

/// Runs the clock, and fills in makespan, times of workers, links, buses and mini-batches of
/// `simulation`, with `transfers` also each message of a link.
ClockTimes run_clock(const ProvedSchedule& proved, std::span<const StageCost> costs,
                     const Hardware& hardware, Simulation& simulation, bool transfers);

/// Where an action's input comes from: the same micro-batch of another stage.
struct InputSource {
  int stage = -1;  ///< −1: it needs none, or an earlier action of its own stage made it
  bool gradient = false;
};
InputSource input_source(const Action& action);

}  // namespace pipewright
