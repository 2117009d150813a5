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

/// One pass of a worker within a mini-batch: of the model's own loss, with the latest weights.
struct PassStep {
  ActionKind kind = ActionKind::Forward;  ///< Forward or one of the backwards
  int stage = 0;
  int microbatch = 0;
};

/// The synchronous schedule in which, mini-batch after mini-batch, each worker of every replica
/// follows `orders[worker]`. A stage is updated (with replicas reduced first) as soon as it has its
/// last gradient of a mini-batch; nobody waits for the other stages' updates.
Schedule schedule_of_workers(const PipelineShape& shape,
                             const std::vector<std::vector<PassStep>>& orders);

/// How a worker walks through the stages it holds, of v·p stages on p workers, stage s on worker
/// s mod p: in rounds of micro-batches, r = m / max(1, ⌊m/p⌋) of them through each of its stages in
/// turn. It begins with (v−1)·r + warm_up·(p−1−w) forwards, goes on with forward and backward in
/// turn, and ends with what backwards are left.
struct LoopedOrder {
  int chunks = 1;   ///< v
  int warm_up = 1;  ///< forwards more than the next worker's
  /// Backwards are split. The weights' half of a backward follows that of the one
  /// `weights_behind`·w later; the last ones come at the end.
  bool split = false;
  int weights_behind = 0;
};

/// Stage s on worker s mod p with p = ⌈stages/chunks⌉: empty where each has its own.
std::vector<int> looped_placement(int stages, int chunks);
/// Throws Error{Experiment}, naming the scheme, where shape.placement is another one than
/// looped_placement() or m is not a multiple of the number of rounds. Stages that v·p exceeds are
/// left out.
Schedule looped_schedule(PipelineShape shape, const LoopedOrder& order, const std::string& scheme);

/// Forwards only, in fill order: evaluation.
Schedule evaluation_schedule(const PipelineShape& shape);

}  // namespace pipewright
