/// Orders of passes that most schemes share. A scheme gives the weights; a builder the order.
#pragma once

#include <functional>

#include "core/schedule/schedule.h"

namespace pipewright {

/// A pass about to be put into the schedule.
struct PassPlace {
  int stage = 0;
  int stages = 1;
  int minibatch = 0;
  int microbatch = 0;
  int microbatches = 1;
  int updates_before = 0;  ///< updates of this stage that precede the pass
  int updates_before_first =
      0;  ///< the same for micro-batch 0 of its mini-batch, same kind of pass

  int depth() const { return stages - 1 - stage; }  ///< D = N−1−k
  /// Updates of this stage between this forward and its own gradient's: the steps a prediction
  /// must look ahead. `steady` counts as if the pipe had never been drained (D when M = 1);
  /// otherwise the first forwards after a fill count what is really pending.
  int distance(bool steady) const;
};

using WeightRule = std::function<Weights(const PassPlace&)>;
using ScaleRule = std::function<double(int stage)>;

inline Weights latest_weights(const PassPlace&) {
  return Weights::latest();
}
inline Weights forward_weights(const PassPlace&) {
  return Weights::of_forward();
}

/// Empty schedule of that shape: every stage learns from the last one's loss.
Schedule empty_schedule(const PipelineShape& shape);

/// The schedule in which each stage follows its own order; `orders` is replica by replica, stage by
/// stage. Stages that share a worker (shape.placement) take turns: backwards before forwards, what
/// is ready before what waits.
Schedule schedule_of_stages(const PipelineShape& shape, std::vector<std::vector<Action>> orders);

/// How each stage of a pipeline walks through its passes.
struct PassOrder {
  bool flush = true;           ///< the pipe is empty between mini-batches
  bool fill_drain = false;     ///< all forwards before the first backward (needs flush)
  bool one_at_a_time = false;  ///< one micro-batch in flight (needs flush)
};

/// One update per mini-batch after its last backward, gradients of micro-batches averaged; with
/// replicas a Reduce before each Update. Without flush this is 1F1B over all micro-batches of the
/// schedule: min(D, total) warm-up forwards, then (F, B) pairs, then the drain.
Schedule pipeline_schedule(const PipelineShape& shape, PassOrder order,
                           const WeightRule& forward = latest_weights,
                           const WeightRule& backward = latest_weights,
                           const ScaleRule& update_scale = {});

/// Forwards only, in fill order: evaluation.
Schedule evaluation_schedule(const PipelineShape& shape);

}  // namespace pipewright
