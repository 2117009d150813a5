/// Where a training empties its pipeline. It is a chain of schedules, each from one drain point to
/// the next; mini-batches are counted from the beginning of the training.
#pragma once

#include <cstdint>
#include <string>

#include "core/experiment/experiment.h"

namespace pipewright {

/// Drains at every epoch's end unless `drain: never`, at every checkpoint, and at the end. The
/// points are the experiment's, so a resumed run has the same ones.
struct DrainPoints {
  std::int64_t minibatches = 0;       ///< of the training
  std::int64_t per_epoch = 1;         ///< mini-batches of an epoch
  bool each_epoch = true;             ///< drain: epoch
  std::int64_t checkpoint_every = 0;  ///< mini-batches; 0 = never

  /// The first point after `position`, which is before the end.
  std::int64_t next(std::int64_t position) const;
  /// None at the end: the final weights are there.
  bool checkpoint_at(std::int64_t position) const;
  bool has_checkpoints() const { return checkpoint_every > 0 && checkpoint_every < minibatches; }
  /// Of all segments, and the first one's length.
  std::int64_t longest() const;
  /// What a person should be told, or "".
  std::string remark() const;
};

DrainPoints drain_points(const TrainOptions& train, int minibatches_per_epoch);

}  // namespace pipewright
