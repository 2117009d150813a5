/// The clock of a simulation: when each action begins and ends.
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/pass_slots.h"
#include "core/schedule/versions.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// When things happened, for the counts that follow.
struct ClockTimes {
  std::vector<std::vector<Span>> spans;
  std::vector<double> forward_arrivals;  ///< by PassSlots; of outputs, at the stage that takes them
  std::vector<double> backward_arrivals;  ///< the same of input gradients
};

/// Fills makespan, times of workers, links, buses and mini-batches of `simulation`. `versions` of
/// the schedule say which actions make a prediction first; null: predictions take no time.
ClockTimes run_clock(const Schedule& schedule, const PassSlots& slots,
                     std::span<const StageCost> costs, const Versions* versions,
                     const Hardware& hardware, Simulation& simulation);

/// Where an action's input comes from: the same micro-batch of another stage.
struct InputPlace {
  int stage = -1;  ///< −1: it needs none, or what an earlier action of its own stage has left
  bool gradient = false;
};
InputPlace input_place(const Action& action);

}  // namespace pipewright
