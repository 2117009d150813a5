// SPDX-License-Identifier: Apache-2.0
/// The fastest schedule over all ways of putting the stages of a pipeline on a number of workers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/synthesis/schedule_search.h"

namespace pipewright {

struct PlacedSchedule {
  std::vector<int> placement;  ///< [stage] → worker
  /// The schedule, and as its bound a pace that no schedule of any placement can beat.
  SearchedSchedule found;
  /// How many placements there are, of which those that swap equal workers are one; 0: too many to
  /// look at, so that some were improved stage by stage.
  std::int64_t placements = 0;
  std::int64_t searched = 0;  ///< placements for which a schedule was looked for
};

/// Stage s on worker s mod p, round after round.
std::vector<int> round_placement(int stages, int workers);
/// Up to the last worker and down again, as often as there are stages.
std::vector<int> folded_placement(int stages, int workers);

/// The placements that give each of the workers a stage: stage 0 is on worker 0, and a stage is on
/// the next new worker or on one that has a stage already, so that none is there twice with other
/// numbers of its workers. {} if there are more than `most`.
std::vector<std::vector<int>> placements_of(int stages, int workers, std::size_t most);

/// Searches for a schedule of every placement that may be faster than the best so far, those with
/// the lowest bound first, with a thousandth of the tries and until `soon` is true; then for the
/// best placement with all of them. Where devices or links differ, workers are not alike, and more
/// placements count. `shape` has one replica and no placement. Throws Error{Experiment} if there
/// are fewer stages than workers, and what search_schedule() throws if no placement keeps to the
/// limits. Equal arguments give equal results, unless the search is stopped.
PlacedSchedule search_placements(PipelineShape shape, int workers, std::span<const StageCost> costs,
                                 const Hardware& hardware, const ScheduleLimits& limits,
                                 const SynthesisSettings& settings = {},
                                 const std::function<bool()>& soon = {});

/// A line for people: "placement 0, 1, 1, 0 …".
std::string placement_text(const PlacedSchedule& placed);

}  // namespace pipewright
