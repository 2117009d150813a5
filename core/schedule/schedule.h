// SPDX-License-Identifier: Apache-2.0
/// A schedule: the ordered actions of every worker, from fill to drain, with the weights each
/// action computes with. It is a value; executor, simulator, checks and pictures all read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/schedule/action_kinds.h"

namespace pipewright {

/// The parameters that a pass computes with.
struct Weights {
  enum class Source : std::uint8_t { Latest, Version, OfForward };
  Source source = Source::Latest;
  /// Updates of this stage since the schedule began (Source::Version); negative: before it.
  int version = 0;
  int ahead = 0;  ///< optimizer steps predicted beyond it; negative: extrapolated back
  int rule = 0;   ///< index into Schedule::rules

  static Weights latest(int ahead = 0, int rule = 0) { return {Source::Latest, 0, ahead, rule}; }
  static Weights of_version(int version, int ahead = 0, int rule = 0) {
    return {Source::Version, version, ahead, rule};
  }
  static Weights of_forward() { return {Source::OfForward, 0, 0, 0}; }
  bool operator==(const Weights&) const = default;
};

/// How s optimizer steps ahead are predicted: W − s·lr·scale·Δ, with Δ
///  - Optimizer: the optimizer's own rule (SGD: v; Nesterov: g + μv is unknown, so v; Adam, AdamW:
///  m̂/(√v̂+ε));
///  - Lookahead: μ·v + decay·(1−dampening)·g, g the last gradient with its weight decay;
///  - Geometric: Σ_{j=1..s} μ^j v instead of s·v; of Adam and AdamW, whose momentum decays
///  likewise, Σ β₁^j m̂_j/(√v̂_j+ε) with the bias corrections of the j-th step to come;
/// or
///  - Drift: W + s·δ, with δ ← decay·δ + (1−decay)·(new W − old W) after every update, 0 at first
///  (a stage has one δ: all its rules of this kind have one decay).
/// `weight_decay` adds λW (AdamW). lr·scale is that of the stage's next update or, with `last_lr`,
/// of its last one: of the mini-batch before the schedule, and the scale of the next, before the
/// first. With `each_lr` each of the s steps has the learning rate of the update that it stands
/// for.
struct PredictionRule {
  enum class Kind : std::uint8_t { Optimizer, Lookahead, Geometric, Drift };
  Kind kind = Kind::Optimizer;
  double decay = 1;
  bool weight_decay = false;
  bool last_lr = false;
  bool each_lr = false;
  bool operator==(const PredictionRule&) const = default;
};

/// One step of a worker: a pass, a reduction or an update.
struct Action {
  ActionKind kind = ActionKind::Forward;
  int stage = 0;
  int replica = 0;
  int minibatch = 0;   ///< from the schedule's start; Update: the last one that it applies
  int microbatch = 0;  ///< passes and host copies only
  int loss = 0;        ///< Head and backwards: the stage of the loss
  Weights weights;     ///< passes only
  double scale = 1;    ///< passes: factor of the weight gradient; Update: of the learning rate
  /// Forward: it runs beside the backward that follows it on its worker, of another pass. Such a
  /// fused pair begins when both have their inputs, and both end together.
  bool with_next = false;

  bool operator==(const Action&) const = default;
};

/// A skip connection between two stages: a tensor that `from` pushes and `to` peeks at or pops.
struct Skip {
  int from = 0, to = 0;
  bool gradient = true;  ///< whether its gradient goes back to `from`
  /// > 0: the tensor is a parameter of `from`, of so many bytes, and not one of a micro-batch. It
  /// crosses once for all micro-batches that read the same weights (lent_weights.h).
  std::int64_t lent_bytes = 0;
  int parameter = 0;  ///< its position among those of `from`
  bool operator==(const Skip&) const = default;
};

/// Two copies of a parameter, in two stages or in one, which send each other their gradients
/// (late_gradients.h).
struct TiedCopies {
  int first = 0, second = 0;            ///< stages
  int of_first = 0, of_second = 0;      ///< positions among their parameters
  std::int64_t numbers = 0, bytes = 0;  ///< of a gradient
  bool operator==(const TiedCopies&) const = default;
};

/// The shape of a pipeline, for which a scheme is asked for a schedule.
struct PipelineShape {
  int stages = 1;
  int replicas = 1;
  int microbatches = 1;  ///< per mini-batch, in each replica; with slices, of all slices
  /// The slices that a micro-batch is cut into along its sequences. Each is a pass of its own, and
  /// counts as a micro-batch everywhere else (slices.h).
  int slices = 1;
  int minibatches = 1;      ///< in the whole schedule
  int first_minibatch = 0;  ///< mini-batches trained before this schedule
  /// The worker of each stage within a replica; empty: stage k is on worker k.
  std::vector<int> placement;
  /// Where replicas share workers, the worker of each stage of each replica, [replica][stage],
  /// among all workers; `placement` is then empty. Empty: every replica has workers of its own.
  std::vector<std::vector<int>> replica_placement;
  /// Skip connections, sorted by the order in which the tensors are pushed; a tensor that several
  /// stages read is listed once per reader, the farthest reader first. They are nested like
  /// brackets: the last pushed is the first popped. A skip to a stage that is not a neighbour
  /// bypasses the stages between.
  std::vector<Skip> skips;
  std::vector<TiedCopies> tied = {};
  int link_capacity = 0;  ///< messages a link to a neighbour holds; 0 = unbounded
  bool training = true;   ///< false: forwards only (evaluation)

  /// Workers of the first replica, which are the first ones.
  int workers_per_replica() const;
  int worker_of(int stage, int replica) const;
  /// The workers that hold the stage, one per replica.
  std::vector<int> workers_of(int stage) const;
  int workers() const;
  /// Places stages on these workers, [replica][stage]: by `placement` if all replicas are placed
  /// alike, one after another, else by `replica_placement`.
  void place(std::vector<std::vector<int>> workers);
  /// The first replica alone, on its workers, with forwards of whole mini-batches.
  PipelineShape evaluating() const;
  /// Micro-batches of a mini-batch with all their slices.
  int whole_microbatches() const { return microbatches / slices; }
  bool operator==(const PipelineShape&) const = default;
};

struct Schedule {
  PipelineShape shape;
  /// [stage] → loss sites it learns from; {{N−1}, …} unless a scheme says otherwise.
  std::vector<std::vector<int>> learns_from;
  std::vector<int> auxiliary;  ///< stages with an auxiliary head, ascending
  std::vector<PredictionRule> rules = {{}};
  /// [stage] → versions from before this schedule that its passes may read, −1 being the last one;
  /// empty: none. A stage keeps so many when a schedule ends. Those before the training's first are
  /// copies of that one.
  std::vector<int> earlier;
  /// Whether updates compare the weights that they are applied to with those that the forwards of
  /// their gradient have read, which a stage then keeps until the update.
  bool updates_compare = false;
  /// Whether every update needs the gradients of all stages of its mini-batch. Whoever executes the
  /// schedule one action after the other then begins no mini-batch before all have given theirs.
  bool updates_meet = false;
  int gradient_delay = 0;  ///< updates that a gradient waits for before it is applied
  /// [replica · N + stage] → the staleness of the gradients that wait when the schedule begins, the
  /// oldest first, each at its own update; empty: none wait.
  std::vector<std::vector<int>> waiting;
  std::vector<std::vector<Action>> workers;  ///< [worker] → its actions in order

  int earlier_of(int stage) const {
    return earlier.empty() ? 0 : earlier[static_cast<std::size_t>(stage)];
  }
  bool operator==(const Schedule&) const = default;
};

/// "2F17", "0B3.1" (micro-batch 1), "1U4", "1b3←2" (of loss 2): stage, letter of the kind
/// (ActionKindFacts), mini-batch.
std::string action_name(const Action& action, int microbatches = 1);

/// "micro-batch 3" or, with slices, "micro-batch 1, slice 1": what a pass computes on.
std::string microbatch_text(const Action& pass, const PipelineShape& shape);
/// "4 micro-batches" or, with slices, "4 micro-batches in 2 slices each": what a mini-batch is.
std::string microbatches_text(const PipelineShape& shape);

class Options;

/// Makes schedules for pipelines of a given shape.
class Scheme {
 public:
  virtual ~Scheme() = default;
  /// Throws Error{Experiment} when the scheme cannot run in this shape (say, 2BW with too few
  /// micro-batches). Otherwise the schedule passes prove(). Any thread may call it.
  virtual Schedule schedule(const PipelineShape& shape) const = 0;
  /// The worker of each of `stages` stages, for experiments without pipeline.placement; empty: one
  /// worker per stage. Throws what schedule() throws.
  virtual std::vector<int> placement(int stages) const {
    (void)stages;
    return {};
  }
  /// The worker of each stage of each replica, [replica][stage], for a scheme whose replicas share
  /// workers; empty: they do not, or the scheme cannot run so.
  virtual std::vector<std::vector<int>> replica_placement(int stages, int replicas) const {
    (void)stages;
    (void)replicas;
    return {};
  }
  /// Which of `stages` stages need an auxiliary head; ascending, never the last stage.
  virtual std::vector<int> auxiliary_sites(int stages) const {
    (void)stages;
    return {};
  }
  /// Whether schedules of many mini-batches are those of few with the middle repeated, wherever
  /// in the training they begin (PipelineShape::first_minibatch). If so, a long training is proved,
  /// compiled and kept as a short schedule with a loop (loop.h). False is always right, but the
  /// memory of a long training then grows with its mini-batches.
  virtual bool repeats() const { return false; }
  /// A remark printed by `describe` and `check`, for instance on what is unverified.
  virtual std::string remark() const { return {}; }
};

/// The one registry of schemes is in libpipewright.so, so that plugins use the same one.
template <>
Registry<Scheme>& Registry<Scheme>::instance();

}  // namespace pipewright

#define PIPEWRIGHT_SCHEME(name, Type, summary)                \
  PIPEWRIGHT_STAMP(scheme, PIPEWRIGHT_WITHOUT_LIBTORCH, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Scheme, name, Type, summary)
