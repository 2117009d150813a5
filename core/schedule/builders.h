// SPDX-License-Identifier: Apache-2.0
/// Orders of passes that most schemes share. The scheme chooses the weights, the builder the order.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// The pass for which a scheme is asked to choose the weights.
struct PassPlace {
  int stage = 0;
  int stages = 1;
  int minibatch = 0;
  int microbatch = 0;
  int microbatches = 1;
  int updates_before = 0;  ///< updates of this stage that precede the pass
  /// Updates of this stage that precede the first pass of the same kind in this mini-batch.
  int updates_before_first = 0;

  int depth() const { return stages - 1 - stage; }  ///< D = N−1−k
  /// Updates of this stage between this forward and the update that applies its gradient: the steps
  /// that a prediction must look ahead. With `steady` the count is that of a pipe that was never
  /// drained (D when M = 1); otherwise the first forwards after a fill count the updates that are
  /// really pending.
  int distance(bool steady) const;
};

/// The weights that a pass computes with.
using WeightRule = std::function<Weights(const PassPlace&)>;
/// The factor of the learning rate in a stage's updates.
using ScaleRule = std::function<double(int stage)>;

inline Weights latest_weights(const PassPlace&) {
  return Weights::latest();
}
inline Weights forward_weights(const PassPlace&) {
  return Weights::of_forward();
}

/// An empty schedule of that shape, in which every stage learns from the last stage's loss.
Schedule empty_schedule(const PipelineShape& shape);

/// The schedule in which each stage follows its own order, `orders[replica · stages + stage]`.
/// Stages that share a worker (shape.placement) take turns: ready actions before waiting ones, and
/// of the ready ones backwards before forwards. Where replicas share workers, all of a stage reduce
/// together.
Schedule schedule_of_stages(const PipelineShape& shape, std::vector<std::vector<Action>> orders);

/// How each stage of a pipeline walks through its passes.
struct PassOrder {
  bool flush = true;           ///< the pipe is empty between mini-batches
  bool fill_drain = false;     ///< all forwards before the first backward (needs flush)
  bool one_at_a_time = false;  ///< one micro-batch in flight (needs flush)
  /// Most micro-batches between their forward and their backward at one stage; 0: no bound.
  int in_flight = 0;
  /// The backwards of each `in_reverse` consecutive micro-batches, such as the slices of one, go
  /// from the last to the first. The warm-up has in_reverse − 1 forwards more.
  int in_reverse = 1;
};

/// The schedule of a pipeline. Each stage updates once per mini-batch, after its last backward,
/// with the average gradient of the micro-batches; with replicas a Reduce precedes each Update.
/// Without flush this is 1F1B over all micro-batches of the schedule: min(D, total) warm-up
/// forwards, at most in_flight − 1 of them, then (F, B) pairs, then the drain.
Schedule pipeline_schedule(const PipelineShape& shape, PassOrder order,
                           const WeightRule& forward = latest_weights,
                           const WeightRule& backward = latest_weights,
                           const ScaleRule& update_scale = {});

/// PipeDream as its authors coded it, a defect: 1F1B without flush whose backwards read the version
/// that they would read if the pipe had never been drained. The first D of a schedule read versions
/// from before it, though their forwards read version 0.
Schedule unfilled_stash_schedule(const PipelineShape& shape, const ScaleRule& update_scale = {});

/// One pass of a worker within a mini-batch. Its loss is the model's own, its weights are the
/// latest.
struct PassStep {
  ActionKind kind = ActionKind::Forward;  ///< Forward or one of the backwards
  int stage = 0;
  int microbatch = 0;
  int replica = 0;         ///< among those that share the worker
  bool with_next = false;  ///< Action::with_next
  bool operator==(const PassStep&) const = default;
};

/// The synchronous schedule in which, mini-batch after mini-batch, each worker of every replica
/// follows `orders[worker]`. Where replicas share workers, each of several groups of them has as
/// many workers as there are orders. A stage is updated (after a Reduce if there are replicas) as
/// soon as it has its last gradient of a mini-batch, and waits for no other stage's update.
Schedule schedule_of_workers(const PipelineShape& shape,
                             const std::vector<std::vector<PassStep>>& orders);

/// The order in which worker w walks through its stages, if v·p stages are on p workers, stage s on
/// worker s mod p. It goes in rounds: r = m / max(1, ⌊m/p⌋) of the m micro-batches through each of
/// its stages in turn. It begins with (v−1)·r + warm_up·(p−1−w) forwards, then alternates forwards
/// and backwards, and ends with the remaining backwards.
struct LoopedOrder {
  int chunks = 1;   ///< v
  int warm_up = 1;  ///< how many more warm-up forwards than the next worker
  /// Whether backwards are split. The weight-only half of a backward then follows the input-only
  /// half of the backward `weights_behind`·w later; the last halves come at the end.
  bool split = false;
  int weights_behind = 0;
};

/// The placement of stage s on worker s mod p with p = ⌈stages/chunks⌉; empty for chunks = 1, where
/// each stage has its own worker.
std::vector<int> looped_placement(int stages, int chunks);
/// The schedule in a looped order. If v·p exceeds the number of stages, the steps of missing stages
/// are left out. Throws Error{Experiment}, naming the scheme, if shape.placement is not
/// looped_placement() or m is not a multiple of the number of rounds.
Schedule looped_schedule(PipelineShape shape, const LoopedOrder& order, const std::string& scheme);

/// The shape on that placement. Throws Error{Experiment}, naming what needs it, if shape.placement
/// is another one.
PipelineShape with_placement(PipelineShape shape, std::vector<int> placement,
                             const std::string& needed_by);

/// The placement of pairs of replicas on the same workers: stage k of the first is on the pair's
/// worker k, of the second on worker N−1−k. Empty if stages or replicas are not even: at an odd
/// number of stages both replicas of the middle one would be on one worker.
std::vector<std::vector<int>> opposite_placement(int stages, int replicas);

/// The shape on opposite_placement(). Throws Error{Experiment}, naming the scheme, if that is empty
/// or shape.placement is given.
PipelineShape with_opposite_placement(PipelineShape shape, const std::string& scheme);

/// DualPipe's synchronous schedule (DeepSeek-AI, 2024), of a shape on opposite_placement() or, of
/// one replica, on v_placement(), where it is cut in half: each worker has a near and a far stage.
/// In the steady state a forward of each runs beside a backward of the other. The order is that of
/// at least as many micro-batches as fill it, two for each worker of a half; steps of missing
/// micro-batches and stages are left out.
Schedule dual_pipe_schedule(const PipelineShape& placed);

/// The placement on p = ⌈stages/(2·waves)⌉ workers that goes forth and back: the first p stages are
/// on workers 0 … p−1, the next on p−1 … 0, `waves` times. With one wave it is a V: worker w holds
/// stages w and 2p−1−w, if there are so many.
std::vector<int> v_placement(int stages, int waves = 1);

/// A building block (Qi, Wan, Amar and Lin, 2024): the slots of one worker in which the passes of
/// the first micro-batch begin, if each takes one: the forwards of its first and of its second
/// stage, then the input-only backwards of its second and of its first. Those of the next
/// micro-batch begin 6 slots later. No two of the four are the same modulo 6.
using VBlock = std::array<int, 4>;
using VBlockRule = std::function<VBlock(int worker, int workers)>;

/// The synchronous schedule on v_placement() that repeats a building block and fills what it leaves
/// free with weight-only backwards. At the beginning and the end of a mini-batch, where slots are
/// idle, passes are earlier than in the block, as far as no worker then holds the activations of
/// more passes than the block needs anyway; at the end weight-only backwards wait for idle slots.
/// Steps of missing stages are left out. Throws what with_placement() throws.
Schedule v_schedule(const PipelineShape& shape, const VBlockRule& block, const std::string& scheme);

/// The schedule of an evaluation: forwards only, in fill order.
Schedule evaluation_schedule(const PipelineShape& shape);

}  // namespace pipewright
