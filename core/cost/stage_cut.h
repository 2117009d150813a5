// SPDX-License-Identifier: Apache-2.0
/// The best cut of a profiled model into stages, and a table that explains it.
#pragma once

#include <limits>
#include <string>

#include "core/cost/profile.h"
#include "core/cost/stage_memory.h"

namespace pipewright {

struct CutRules {
  enum class By : std::uint8_t { Time, Memory } by = By::Time;
  int stages = 1;
  int microbatches = 1;  ///< per mini-batch; each bears an equal part of the update
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes/s of a link
  double latency = 0;                                          ///< s per message
  std::int64_t memory = 0;  ///< bytes that a stage may need at most; 0: no limit
};

/// Seconds that the layers [begin, end) take for a micro-batch: forward, backward, the part of the
/// update, and sending the outputs to the next stage and the gradients to the one before.
double stage_seconds(const Profile& profile, std::size_t begin, std::size_t end,
                     const CutRules& rules);

/// The best cut, as layers per stage: the slowest stage is as fast as possible, or (By::Memory) the
/// largest as small as possible; of equal cuts the one that min_max_partition() prefers. Throws
/// Error{Experiment} when no cut fits into the memory, naming the stage that needs the most in the
/// cut that needs the least, or when a cut by time is asked of a profile without times.
std::vector<std::int64_t> best_cut(const Profile& profile, const StageMemories& memories,
                                   const CutRules& rules);

}  // namespace pipewright
