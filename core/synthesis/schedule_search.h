// SPDX-License-Identifier: Apache-2.0
/// The fastest schedule that is found for a pipeline, its simulation, and what no schedule can
/// beat.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"
#include "core/synthesis/built_in_schedules.h"
#include "core/synthesis/steady_pace.h"
#include "core/synthesis/synthesis.h"

namespace pipewright {

/// The limits of a search.
struct ScheduleLimits {
  /// Forwards whose backward has not ended, on a worker at once, of all its stages together.
  double live = kUnlimited;
  /// [worker] → bytes that it may hold in a simulation, 0: any number; empty: any number on all.
  std::vector<std::int64_t> memory;
  double optimizer_state = 0;  ///< bytes that the optimizer keeps per byte of parameters
  /// [stage] bytes that it keeps besides; empty: none.
  std::vector<std::int64_t> optimizer_tables = {};
  std::int64_t fixed = 0;  ///< bytes that every worker holds besides (SimulationOptions::fixed)
  /// Updates that may come between a forward and the update that applies its gradient.
  int staleness = 0;
};

struct SearchedSchedule {
  std::string from;  ///< the name of a built-in scheme, if none faster was found; else ""
  std::optional<ProvedSchedule> proved;  ///< of the result of a search always there
  Simulation simulation;                 ///< of it
  SteadyPace pace;
  PaceBound bound;  ///< no schedule within the limits has a faster pace
  /// The fastest of the built-in schemes that keep to the limits, by its simulation.
  std::string built_in;
  double built_in_seconds = kUnlimited;

  /// How much longer it takes than the bound, as a part of that; 0 if it is proved to be the
  /// fastest.
  double gap() const;
  /// The idle part of all workers' time in the steady part.
  double bubble() const;
};

/// Searches among schedules whose backwards are all whole or all split, without jitter of the
/// hardware; the bound is one of schedules that mix them, too. The result has shape.minibatches
/// mini-batches, of whose middle half steady_pace() tells the pace, which is never below the bound;
/// no built-in scheme that keeps to the limits is faster. Equal arguments give equal results. A
/// search that is stopped may have looked at fewer, also of the built-in schemes. The shape has one
/// replica. Throws Error{Experiment} if the limits leave no room for a micro-batch, or the search
/// is too large.
SearchedSchedule search_schedule(const PipelineShape& shape, std::span<const StageCost> costs,
                                 Hardware hardware, const ScheduleLimits& limits,
                                 const SynthesisSettings& settings = {});

/// A pace that no schedule within the limits can beat, without a search. Infinite where a worker
/// has no room for a micro-batch.
PaceBound schedule_bound(const PipelineShape& shape, std::span<const StageCost> costs,
                         const Hardware& hardware, const ScheduleLimits& limits);

/// Whether a whole backward of some stage takes less time than its halves together.
bool whole_backwards_may_be_faster(std::span<const StageCost> costs);

/// The most forwards that each worker holds at once, from their beginning to the end of the last
/// backward of their micro-batch at the stage.
std::vector<int> most_live(const ProvedSchedule& proved);

/// The largest number of updates between a forward and the update that applies its gradient, of all
/// stages, predicted steps not counted; nullopt of a schedule with predictions or with several
/// losses.
std::optional<int> staleness_of(const ProvedSchedule& proved);

}  // namespace pipewright
