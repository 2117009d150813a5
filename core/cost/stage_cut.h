/// The best cut of a profiled model into stages, and why it is that one.
#pragma once

#include <limits>
#include <string>

#include "core/cost/profile.h"
#include "core/cost/stage_memory.h"

namespace pipewright {

struct CutRules {
  enum class By : std::uint8_t { Time, Memory } by = By::Time;
  int stages = 1;
  int microbatches = 1;  ///< of a mini-batch: its update is shared among them
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes/s of a link
  double latency = 0;                                          ///< s of a message
  std::int64_t memory = 0;  ///< bytes of a worker, which no stage may need more of; 0 = any
};

/// Seconds of the layers [begin, end) for a micro-batch: forward, backward, their part of the
/// update, and sending on what the stage makes: outputs to the next stage, gradients to the one
/// before.
double stage_seconds(const Profile& profile, std::size_t begin, std::size_t end,
                     const CutRules& rules);

/// Layers per stage, so that the slowest stage is as fast as can be, or the largest as small; of
/// equal cuts as min_max_partition(). Throws Error{Experiment} when no cut fits into the memory,
/// naming the stage that needs the most in the cut that needs least, or, by time, when the profile
/// has no times.
std::vector<std::int64_t> best_cut(const Profile& profile, const StageMemories& memories,
                                   const CutRules& rules);

/// One row per stage: layers, time and share, parameters, memory, what it sends on; then what
/// limits the cut.
std::string render_cut(const Profile& profile, const StageMemories& memories, const CutRules& rules,
                       std::span<const std::int64_t> balance);

}  // namespace pipewright
