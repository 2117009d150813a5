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
  int updates_before = 0;   ///< updates of this stage that precede the pass in its worker's order
  int forwards_pending = 0; ///< earlier (micro-)batches at this stage forwarded and not yet backwarded
  int depth() const { return stages - 1 - stage; }  ///< D = N−1−k
};

using WeightRule = std::function<Weights(const PassPlace&)>;
using ScaleRule = std::function<double(int stage)>;

inline Weights latest_weights(const PassPlace&) { return Weights::latest(); }
inline Weights forward_weights(const PassPlace&) { return Weights::of_forward(); }

/// Empty schedule of that shape: every stage learns from the last one's loss.
Schedule empty_schedule(const PipelineShape& shape);

/// How each stage of a pipeline walks through its passes.
struct PassOrder {
  bool flush = true;       ///< the pipe is empty between mini-batches
  bool fill_drain = false; ///< all forwards before the first backward (needs flush)
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
