/// PipeDream's partitioner: a dynamic programme over stages and how often each is replicated, on
/// workers whose links differ by level (Narayanan et al., SOSP 2019, §3.1, and its code).
///
/// Goals: the plans that the paper and its code would give, with the time they predict. Non-goal:
/// running them all, for our pipelines have as many replicas of every stage.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/cost/profile.h"

namespace pipewright {

/// So many units of the level below, which exchange messages at that speed; below the first are
/// single workers.
struct WorkerLevel {
  int units = 1;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes/s
};

struct PipeDreamRules {
  /// What layers with computation C and weights P take on m replicas, for a mini-batch each:
  ///  - Paper: max(C, 2(m−1)P/B) / m; and a boundary of a bytes takes 2a/B.
  ///  - Code: (C + 4(m−1)P/(m·B·w)) / m, w the workers in a unit of the level below; boundaries
  ///    take nothing unless `boundaries`, then 2a/(B·m) at both ends.
  /// On a higher level C is the best time of the same layers on one unit of the level below.
  enum class Cost : std::uint8_t { Paper, Code } cost = Cost::Paper;
  bool boundaries = false;          ///< of Cost::Code
  bool straight = false;            ///< no stage is replicated
  std::vector<WorkerLevel> levels;  ///< innermost first; at least one
};

struct PipeDreamStage {
  std::size_t begin = 0, end = 0;  ///< layers
  int replicas = 1;
  bool operator==(const PipeDreamStage&) const = default;
};

struct PipeDreamPlan {
  std::vector<PipeDreamStage> stages;
  double seconds = 0;  ///< between two mini-batches, as predicted
};

/// Uses all workers. Throws Error{Experiment} when it cannot, with more unreplicated stages than
/// layers. O(layers² · units²) for the topmost level, O(layers³ · units²) and layers² · units
/// numbers for each level inside; throws Error{Experiment} where that takes more than some minutes
/// or than the machine's memory.
PipeDreamPlan pipedream_partition(const Profile& profile, const PipeDreamRules& rules);

}  // namespace pipewright
