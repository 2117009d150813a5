// SPDX-License-Identifier: Apache-2.0
/// PipeDream's partitioner: a dynamic programme over stages and how often each is replicated, on
/// workers whose links differ by level (Narayanan et al., SOSP 2019, §3.1, and its code).
///
/// Goals: the plans that the paper and its code would give, with the time they predict. Non-goal:
/// running all of them, as every stage of our pipelines has the same number of replicas.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/cost/profile.h"

namespace pipewright {

/// A level in the hierarchy of workers: `units` units of the level below, which exchange messages
/// at this bandwidth. The units of the first level are single workers.
struct WorkerLevel {
  int units = 1;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes/s
};

struct PipeDreamRules {
  /// The seconds per mini-batch that layers with compute time C (s) and weights P (bytes) take on m
  /// replicas, B being the bandwidth:
  ///  - Paper: max(C, 2(m−1)P/B) / m; and a boundary of a bytes takes 2a/B.
  ///  - Code: (C + 4(m−1)P/(m·B·w)) / m, w the workers in a unit of the level below; boundaries
  ///    take nothing unless `boundaries`, then 2a/(B·m) at both ends.
  /// On a higher level C is the best time of the same layers on one unit of the level below.
  enum class Cost : std::uint8_t { Paper, Code } cost = Cost::Paper;
  bool boundaries = false;  ///< Cost::Code only: whether boundaries take time
  /// How often a mini-batch has what the profile measured, which is one micro-batch. Gradients are
  /// exchanged once for all of them.
  int microbatches = 1;
  std::vector<WorkerLevel> levels;  ///< innermost first; at least one
};

struct PipeDreamStage {
  std::size_t begin = 0, end = 0;  ///< layers
  int replicas = 1;
  bool operator==(const PipeDreamStage&) const = default;
};

struct PipeDreamPlan {
  std::vector<PipeDreamStage> stages;
  double seconds = 0;  ///< predicted time per mini-batch
};

/// Finds the plan with the least predicted time that uses all workers. Throws Error{Experiment} if
/// the search would take more than some minutes or more than the machine's memory. It takes
/// O(layers² · units²) for the topmost level; each level inside takes O(layers³ · units²) and holds
/// layers² · units numbers.
PipeDreamPlan pipedream_partition(const Profile& profile, const PipeDreamRules& rules);

}  // namespace pipewright
