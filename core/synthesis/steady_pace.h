// SPDX-License-Identifier: Apache-2.0
/// Seconds of a mini-batch in a simulated schedule that would go on for ever as in its middle.
#pragma once

#include "core/schedule/schedule.h"
#include "core/simulation/simulate.h"

namespace pipewright {

struct SteadyPace {
  double seconds = 0;    ///< per mini-batch
  bool repeats = false;  ///< whether the schedule has a part that can be repeated for ever
};

/// The pace of the part of the middle half that repeats itself: of K mini-batches whose actions
/// begin and end T seconds before those of the K mini-batches behind them, T/K. The schedule could
/// repeat them without end, so that what bounds the pace of all schedules bounds this one. Where
/// nothing repeats itself, or the schedule is too short to show it, the pace is the makespan
/// divided by the number of mini-batches, fill and drain included.
SteadyPace steady_pace(const Schedule& schedule, const Simulation& simulation);

}  // namespace pipewright
