// SPDX-License-Identifier: Apache-2.0
/// The memory of stages besides activations and messages, computed from declarations alone: the
/// allocations of Stage's constructor, and the versions of weights that a schedule adds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/versions.h"
#include "core/stage/stage.h"

namespace pipewright {

/// The memory of one stage replica.
struct StageNeed {
  double parameters = 0;  ///< number of parameter elements
  int copies = 1;         ///< copies of them at once: the schedule's versions and predictions
  double bytes = 0;       ///< bytes of the copies, the gradient and the optimizer's state
  double drained = 0;     ///< of those where the pipeline is drained: one copy, and no gradient
};

/// The parts of an experiment that decide it for all stages.
struct Holdings {
  const Optimizer& optimizer;
  const std::vector<NamedGradientRule>& gradient_rules;
  int disturbed = 0;         ///< tensors as large as the weights that disturbances keep
  int disturbed_narrow = 0;  ///< and in mixed precision in the narrow format
  const Precision& precision;
  Predictions predictions;
  bool sums = false;  ///< gradients of several passes or replicas are added, in the wide format

  /// Number of tensors as large as the weights that a stage keeps for its updates, predictions and
  /// disturbances.
  int slots() const;
  /// Bytes of the optimizer's tables (Optimizer::tables) in stages of these layers; empty if it has
  /// none.
  std::vector<std::int64_t> table_bytes(const std::vector<std::vector<LayerPtr>>& stages) const;
  /// The need of a stage with these parameters and so many copies of them.
  StageNeed need(const NamedShapes& parameters, int copies) const;

 private:
  std::int64_t table_bytes(const NamedShapes& parameters) const;
};

}  // namespace pipewright
