// SPDX-License-Identifier: Apache-2.0
/// Drain points: the mini-batches after which a training empties its pipeline. A training is a
/// chain of schedules, each from one drain point to the next. Positions are numbers of mini-batches
/// since the beginning of the training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The pipeline drains at the end of every epoch unless `drain: never`, at every checkpoint, and at
/// the end. The points depend on the experiment only, so a resumed run has the same ones.
struct DrainPoints {
  std::int64_t minibatches = 0;       ///< mini-batches of the training
  std::int64_t per_epoch = 1;         ///< mini-batches of an epoch
  bool each_epoch = true;             ///< drain: epoch
  std::int64_t checkpoint_every = 0;  ///< mini-batches; 0 = never
  /// Mini-batches between evaluations that drain nothing; 0: the rows of epochs have all there are.
  std::int64_t evaluate_every = 0;

  /// Epochs of the training, the last of which may end early.
  int epochs() const { return static_cast<int>((minibatches + per_epoch - 1) / per_epoch); }
  /// The first drain point after `position`, which must lie before the end.
  std::int64_t next(std::int64_t position) const;
  /// The last drain point before `position`, which must be one itself behind the beginning.
  std::int64_t previous(std::int64_t position) const;
  /// Whether there is a checkpoint at `position`. At the end there is none, because the final
  /// weights are saved.
  bool checkpoint_at(std::int64_t position) const;
  bool has_checkpoints() const { return checkpoint_every > 0 && checkpoint_every < minibatches; }
  /// Whether there is such an evaluation at `position`; there is one at the end.
  bool evaluates_at(std::int64_t position) const;
  /// The evaluations between the drain points `first` and `end`, in mini-batches since the first.
  std::vector<int> evaluations(std::int64_t first, std::int64_t end) const;
  /// Whether there are any between two drain points.
  bool evaluates_within() const;
  /// Length of the longest segment, which the first one has.
  std::int64_t longest() const;
  /// A position in words, counted from 1: "epoch 3" or "mini-batch 5 of epoch 4".
  std::string position_text(std::int64_t position) const;
  /// A remark for the user, or "".
  std::string remark() const;
};

DrainPoints drain_points(const TrainOptions& train, int minibatches_per_epoch);

}  // namespace pipewright
