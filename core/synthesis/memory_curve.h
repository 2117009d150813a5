// SPDX-License-Identifier: Apache-2.0
/// How fast a pipeline can be, the more its workers may hold and the older weights may be.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/synthesis/schedule_search.h"

namespace pipewright {

struct CurvePoint {
  int staleness = 0;      ///< the limit of it
  int live = 0;           ///< the limit of live forwards on a worker
  std::int64_t peak = 0;  ///< bytes of the worker that holds most
  double bubble = 0;      ///< idle part of all workers' time in the steady part
  double seconds = 0;     ///< per mini-batch
  double bound = 0;       ///< s that no schedule within the limits can beat
  std::string scope;      ///< scope_name() of the bound
  std::string built_in;   ///< the fastest built-in scheme within the limits; "" if there is none
  double built_in_seconds = 0;
};

/// For each staleness from 0 to the largest, but no more than two for each stage, the fastest
/// schedules found for 1, 2, … live forwards, up to as many as make a pipeline no faster. A
/// schedule that was found for fewer live forwards counts, too, so that none of these is slower
/// than the one before. `stop` makes what SynthesisSettings::stop is for one search. Throws what
/// search_schedule() throws.
std::vector<CurvePoint> memory_curve(const PipelineShape& shape, std::span<const StageCost> costs,
                                     const Hardware& hardware, ScheduleLimits limits,
                                     SynthesisSettings settings,
                                     const std::function<std::function<bool()>()>& stop = {});

/// A row per point: staleness,live,peak_bytes,bubble,seconds,bound,gap,built_in,built_in_seconds,
/// scope.
std::string curve_csv(const std::vector<CurvePoint>& curve);
/// The same as a table for people.
std::string curve_text(const std::vector<CurvePoint>& curve);

}  // namespace pipewright
