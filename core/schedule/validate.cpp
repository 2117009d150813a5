// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/validate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/execution_order.h"
#include "core/schedule/pass_slots.h"
#include "core/schedule/versions.h"

namespace pipewright {
namespace {

bool learns(const Schedule& schedule, const Action& backward) {
  return std::ranges::count(schedule.learns_from[as_size(backward.stage)], backward.loss) > 0;
}

[[noreturn]] void refuse_shape(const std::string& message) {
  throw Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message));
}

/// Checks the workers of replicas that share them. Those of one stage meet at its reductions, so
/// they have to be on different ones.
void check_replica_placement(const PipelineShape& shape) {
  const auto& placement = shape.replica_placement;
  if (placement.empty()) return;
  const auto whole = [&](const std::vector<int>& workers) {
    return workers.size() == as_size(shape.stages) && std::ranges::min(workers) >= 0;
  };
  if (placement.size() != as_size(shape.replicas) || !std::ranges::all_of(placement, whole))
    refuse_shape("its placement does not name one worker for each stage of each replica");
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<int> workers = shape.workers_of(stage);
    std::ranges::sort(workers);
    if (std::ranges::adjacent_find(workers) != workers.end())
      refuse_shape(concat("two replicas of stage ", stage, " are on worker ",
                          *std::ranges::adjacent_find(workers),
                          ", where they can never meet at a reduction"));
  }
}

/// Checks that all numbers are within their ranges, and every action is on the worker of its stage.
void check_ranges(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  if (shape.stages < 1 || shape.replicas < 1 || shape.microbatches < 1 || shape.minibatches < 1)
    refuse_shape("it needs at least one stage, replica, micro-batch and mini-batch");
  if (shape.slices < 1 || shape.microbatches % shape.slices != 0)
    refuse_shape(concat("its ", shape.microbatches,
                        " slices of a mini-batch are not whole micro-batches of ", shape.slices));
  if (!shape.placement.empty() && shape.placement.size() != as_size(shape.stages))
    refuse_shape("its placement does not name one worker per stage");
  check_replica_placement(shape);
  if (schedule.workers.size() != as_size(shape.workers()))
    refuse_shape(concat("it has actions for ", counted(schedule.workers.size(), "worker"),
                        "; its stages and replicas need ", shape.workers()));
  if (schedule.learns_from.size() != as_size(shape.stages))
    refuse_shape("its learns_from does not say for every stage which losses it learns from");
  auto in = [](int value, int end) { return value >= 0 && value < end; };
  for (std::size_t i = 0; i < shape.skips.size(); ++i) {
    const auto& [from, to, gradient] = shape.skips[i];
    if (!in(from, shape.stages) || !in(to, shape.stages) || from >= to)
      refuse_shape(concat("it has a skip connection from stage ", from, " to stage ", to,
                          "; expected one to a later stage"));
    for (std::size_t j = 0; j < i; ++j)
      if (shape.skips[j].from > from || (shape.skips[j].to > from && shape.skips[j].to < to))
        refuse_shape(
            "its skip connections are not nested: what is put aside last has to be taken back "
            "first");
  }
  for (int k = 0; k < shape.stages; ++k)
    for (const int loss : schedule.learns_from[as_size(k)])
      if (loss < k || loss >= shape.stages)
        refuse_shape(concat("stage ", k, " learns from the loss of stage ", loss,
                            "; expected its own loss or that of a later stage"));
  for (std::size_t i = 0; i < schedule.auxiliary.size(); ++i)
    if (!in(schedule.auxiliary[i], shape.stages - 1) ||
        (i > 0 && schedule.auxiliary[i] <= schedule.auxiliary[i - 1]))
      refuse_shape("its auxiliary heads have to be at stages before the last, in ascending order");
  for (int w = 0; w < shape.workers(); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      auto place = [&] { return concat("worker ", w, ", action ", i, " (", action_name(a), ")"); };
      if (!in(a.stage, shape.stages) || !in(a.replica, shape.replicas) ||
          !in(a.minibatch, shape.minibatches) || !in(a.microbatch, shape.microbatches) ||
          !in(a.loss, shape.stages) || !in(a.weights.rule, static_cast<int>(schedule.rules.size())))
        refuse_shape(concat(
            place(),
            " names a stage, replica, mini-batch, micro-batch, loss or weight rule that there is "
            "not"));
      if (is_part_of_backward(a.kind) && a.loss < a.stage)
        refuse_shape(concat(place(), " goes back from the loss of stage ", a.loss,
                            ", an earlier stage than its own"));
      if (shape.worker_of(a.stage, a.replica) != w)
        refuse_shape(concat(place(), " has to be on worker ", shape.worker_of(a.stage, a.replica),
                            ", which holds its stage"));
    }
}

/// A set of (pass, kind) pairs. The first four kinds of each pass are in a flat array; more, which
/// only stages with many losses have, are in a hash set.
class PassKeys {
 public:
  PassKeys(std::size_t passes, std::uint32_t kinds) : kinds_(kinds), first_(passes) {}

  /// Returns false if the pair was there already. `kind` is less than the number of kinds.
  bool insert(std::size_t pass, std::uint32_t kind) {
    if (contains(pass, kind)) return false;
    for (std::uint32_t& each : first_[pass])
      if (each == 0) {
        each = kind + 1;
        return true;
      }
    others_.insert(pass * kinds_ + kind);
    return true;
  }
  bool contains(std::size_t pass, std::uint32_t kind) const {
    const auto& first = first_[pass];
    return std::ranges::find(first, kind + 1) != first.end() ||
           (first.back() != 0 && !others_.empty() && others_.contains(pass * kinds_ + kind));
  }

 private:
  std::uint64_t kinds_;
  std::vector<std::array<std::uint32_t, 4>> first_;  ///< kind + 1; 0: none
  std::unordered_set<std::uint64_t> others_;
};

/// Some pass of the same stage and micro-batch, to be marked as the culprit where another is
/// missing.
ActionPlace some_of_pass(const Schedule& schedule, const Action& like) {
  const int worker = schedule.shape.worker_of(like.stage, like.replica);
  const auto& actions = schedule.workers[as_size(worker)];
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& a = actions[as_size(i)];
    if (is_pass(a.kind) && a.stage == like.stage && a.minibatch == like.minibatch &&
        a.microbatch == like.microbatch)
      return {worker, i};
  }
  return kNowhere;
}

[[noreturn]] void refuse_gap(const Schedule& schedule, const Action& missing) {
  const bool of_loss = is_backward(missing.kind);
  throw InvalidSchedule(
      concat("it has no ", kind_name(missing.kind), " of stage ", missing.stage, ", replica ",
             missing.replica, ", mini-batch ", missing.minibatch, ", ",
             microbatch_text(missing, schedule.shape),
             of_loss ? concat(", for the loss of stage ", missing.loss) : std::string()),
      some_of_pass(schedule, missing));
}

/// Checks that every pass is there exactly once, and no other.
void check_complete(const Schedule& schedule) {
  constexpr auto kKinds = static_cast<std::uint32_t>(kActionKinds.size());
  const PipelineShape& shape = schedule.shape;
  const auto microbatches = as_size(shape.microbatches), replicas = as_size(shape.replicas),
             stages = as_size(shape.stages);
  PassKeys seen(as_size(shape.minibatches) * microbatches * replicas * stages,
                static_cast<std::uint32_t>(shape.stages) * kKinds);
  auto pass = [&](int stage, int replica, int minibatch, int microbatch) {
    return ((as_size(minibatch) * microbatches + as_size(microbatch)) * replicas +
            as_size(replica)) *
               stages +
           as_size(stage);
  };
  auto kind_of = [](ActionKind kind, int loss) {
    if (kind == ActionKind::BackwardInput) kind = ActionKind::Backward;
    return static_cast<std::uint32_t>(loss) * kKinds + static_cast<std::uint32_t>(kind);
  };
  for (int w = 0; w < shape.workers(); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind != ActionKind::Forward && !shape.training)
        refuse(schedule, {w, i}, "has no place in an evaluation, which consists of forwards only");
      if (!of_microbatch(a.kind)) continue;
      const int loss = is_part_of_backward(a.kind)  ? a.loss
                       : a.kind == ActionKind::Head ? a.stage
                                                    : 0;
      if (!seen.insert(pass(a.stage, a.replica, a.minibatch, a.microbatch), kind_of(a.kind, loss)))
        refuse(schedule, {w, i}, "happens twice");
      if (makes_weight_gradient(a.kind) && !learns(schedule, a))
        refuse(schedule, {w, i},
               concat("goes back from the loss of stage ", a.loss,
                      ", from which its stage does not learn"));
      if (a.kind != ActionKind::Head) continue;
      if (!std::ranges::binary_search(schedule.auxiliary, a.stage))
        refuse(schedule, {w, i}, "belongs to a stage without an auxiliary head");
      if (a.loss != a.stage)
        refuse(schedule, {w, i},
               concat("names the loss of stage ", a.loss, "; expected that of its own stage"));
    }
  for (int replica = 0; replica < shape.replicas; ++replica)
    for (int m = 0; m < shape.minibatches; ++m)
      for (int u = 0; u < shape.microbatches; ++u)
        for (int k = 0; k < shape.stages; ++k) {
          const std::size_t here = pass(k, replica, m, u);
          auto need = [&](ActionKind kind, int loss) {
            if (!seen.contains(here, kind_of(kind, loss)))
              refuse_gap(schedule, {.kind = kind,
                                    .stage = k,
                                    .replica = replica,
                                    .minibatch = m,
                                    .microbatch = u,
                                    .loss = loss});
          };
          need(ActionKind::Forward, 0);
          if (!shape.training) continue;
          for (const int loss : schedule.learns_from[as_size(k)]) need(ActionKind::Backward, loss);
          if (std::binary_search(schedule.auxiliary.begin(), schedule.auxiliary.end(), k))
            need(ActionKind::Head, k);
        }
}

/// Checks that a recomputation comes before the backwards that need it.
void check_recomputations(const Schedule& schedule) {
  const bool any = std::ranges::any_of(schedule.workers, [](const std::vector<Action>& worker) {
    return std::ranges::any_of(worker,
                               [](const Action& a) { return a.kind == ActionKind::Recompute; });
  });
  if (!any) return;
  const PassSlots slots(schedule);
  std::vector<bool> begun(slots.forwards(), false);  // whether a backward of each forward has begun
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (is_backward(a.kind)) begun[slots.forward(a, a.stage)] = true;
      if (a.kind != ActionKind::Recompute) continue;
      if (begun[slots.forward(a, a.stage)])
        refuse(schedule, {w, i}, "comes after a backward that needs its activations");
    }
}

/// Checks that what an offload takes away is there, that one fetch brings it back, and that no pass
/// needs it meanwhile.
class OffloadCheck {
 public:
  explicit OffloadCheck(const Schedule& schedule)
      : schedule_(schedule), slots_(schedule), kept_(slots_.forwards()) {}

  void run() {
    for (int w = 0; w < static_cast<int>(schedule_.workers.size()); ++w)
      for (int i = 0; i < static_cast<int>(schedule_.workers[as_size(w)].size()); ++i) step({w, i});
    for (const Kept& kept : kept_) {
      if (kept.state == Kept::State::OnHost)
        refuse(schedule_, kept.copy, "moves activations to the host that no fetch brings back");
      if (kept.state == Kept::State::Fetched)
        refuse(schedule_, kept.copy, "brings back activations that no later pass needs");
    }
  }

 private:
  /// Where what a forward keeps is.
  struct Kept {
    enum class State : std::uint8_t { Nowhere, OnDevice, Needed, OnHost, Fetched };
    State state = State::Nowhere;  ///< Needed: a backward has begun, or a recomputation has run
    ActionPlace copy = kNowhere;   ///< the last offload or fetch
    bool moved = false;            ///< by an offload
  };

  void step(ActionPlace place) {
    const Action& a = schedule_.workers[as_size(place.first)][as_size(place.second)];
    if (!of_microbatch(a.kind)) return;
    using enum Kept::State;
    Kept& kept = kept_[slots_.forward(a, a.stage)];
    if (a.kind == ActionKind::Forward) {
      kept.state = kept.state == Nowhere ? OnDevice : kept.state;
    } else if (a.kind == ActionKind::Offload) {
      if (kept.state == Nowhere) refuse(schedule_, place, "comes before its forward");
      if (kept.state != OnDevice)
        refuse(schedule_, place, "comes after a backward or a recomputation of its micro-batch");
      kept = {OnHost, place, true};
    } else if (a.kind == ActionKind::Fetch) {
      if (kept.state != OnHost)
        refuse(schedule_, place, "has no offload of the same micro-batch before it");
      kept = {Fetched, place, true};
    } else if (kept.state == OnHost) {
      refuse(schedule_, place,
             "needs activations that an offload has moved to the host, and no fetch before it "
             "brings them back");
    } else if (a.kind == ActionKind::Recompute && kept.moved) {
      refuse(schedule_, place, "makes activations again that an offload has moved");
    } else if (a.kind != ActionKind::Head || kept.state == Fetched) {
      kept.state = Needed;
    }
  }

  const Schedule& schedule_;
  const PassSlots slots_;
  std::vector<Kept> kept_;  ///< by PassSlots::forward()
};

void check_offloads(const Schedule& schedule) {
  const bool any = std::ranges::any_of(schedule.workers, [](const std::vector<Action>& worker) {
    return std::ranges::any_of(worker, [](const Action& a) { return is_host_copy(a.kind); });
  });
  if (any) OffloadCheck(schedule).run();
}

/// Checks that a stage that learns from a loss does more than relay it, and that a BackwardWeight
/// completes a BackwardInput of the same pass.
void check_halves(const Schedule& schedule, const PassIndex& index) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind == ActionKind::BackwardInput && learns(schedule, a) &&
          index.weight_backward(a) == kNowhere)
        refuse(schedule, {w, i},
               concat("passes the gradient of the loss of stage ", a.loss,
                      " on without a weight-only backward, but its stage learns from that loss"));
      if (a.kind != ActionKind::BackwardWeight) continue;
      const ActionPlace first = index.backward(a, a.stage);
      const bool half =
          first != kNowhere && schedule.workers[as_size(first.first)][as_size(first.second)].kind ==
                                   ActionKind::BackwardInput;
      if (!half) refuse(schedule, {w, i}, "has no input-only backward of the same pass before it");
    }
}

/// Checks that both halves of a backward use the same weights.
void check_weights_of_halves(const Schedule& schedule, const PassIndex& index,
                             const Versions& versions) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind != ActionKind::BackwardWeight) continue;
      const ActionPlace first = index.backward(a, a.stage);
      if (versions.workers[as_size(w)][as_size(i)].key !=
          versions.workers[as_size(first.first)][as_size(first.second)].key)
        refuse(schedule, {w, i},
               "computes with other weights than the input-only backward of the same pass");
    }
}

/// Checks that a recomputation uses the weights of its forward, which it repeats, or those of all
/// backwards that need it.
void check_weights_of_recomputations(const Schedule& schedule, const PassIndex& index,
                                     const Versions& versions) {
  const auto key_at = [&](ActionPlace place) {
    return versions.workers[as_size(place.first)][as_size(place.second)].key;
  };
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind != ActionKind::Recompute || key_at({w, i}) == key_at(index.forward(a))) continue;
      Action backward = a;
      for (backward.loss = a.stage; backward.loss < schedule.shape.stages; ++backward.loss)
        if (const ActionPlace place = index.backward(backward, a.stage);
            place != kNowhere && key_at(place) != key_at({w, i}))
          refuse(
              schedule, {w, i},
              "computes with other weights than its forward and than the backwards that need it");
    }
}

/// Checks that every relayed gradient has a receiver, and that exactly one later update applies
/// every weight gradient, after a Reduce if there are replicas.
void check_gradients(const Schedule& schedule, const PassIndex& index) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w) {
    const auto& actions = schedule.workers[as_size(w)];
    struct Pending {
      int place = -1;  ///< index of the last gradient not yet applied
      bool reduced = false;
    };
    std::vector<Pending> stages(as_size(schedule.shape.stages) * as_size(schedule.shape.replicas));
    for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
      const Action& a = actions[as_size(i)];
      Pending& pending =
          stages[as_size(a.stage) * as_size(schedule.shape.replicas) + as_size(a.replica)];
      if (a.kind == ActionKind::BackwardInput && index.consumer_of(a) == kNowhere &&
          index.weight_backward(a) == kNowhere)
        refuse(schedule, {w, i},
               concat("passes the gradient of the loss of stage ", a.loss,
                      " on, but no earlier stage takes it"));
      if (adds_gradient(a.kind)) {
        if (pending.reduced)
          refuse(schedule, {w, i},
                 "adds to a gradient that has been reduced over the replicas already");
        pending = {i, false};
      }
      if (of_microbatch(a.kind)) continue;
      const bool reduces = a.kind == ActionKind::Reduce;
      if (pending.place < 0)
        refuse(schedule, {w, i},
               reduces ? "has no gradient to reduce" : "has no gradient to apply");
      if (reduces && pending.reduced)
        refuse(schedule, {w, i}, "reduces a gradient that has been reduced already");
      if (!reduces && schedule.shape.replicas > 1 && !pending.reduced)
        refuse(schedule, {w, i}, "applies a gradient that its replicas have not reduced");
      if (actions[as_size(pending.place)].minibatch != a.minibatch)
        refuse(schedule, {w, i}, "follows a gradient of another mini-batch than its own");
      if (reduces)
        pending.reduced = true;
      else
        pending = {};
    }
    for (const Pending& pending : stages)
      if (pending.place >= 0)
        refuse(schedule, {w, pending.place}, "makes a gradient that no update applies");
  }
}

/// Checks that every action that is to run beside the next one begins a fused pair.
void check_pairs(const Schedule& schedule) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w) {
    const auto& actions = schedule.workers[as_size(w)];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!actions[i].with_next || is_fused_pair(actions, i)) continue;
      const bool last = i + 1 == actions.size();
      refuse(schedule, {w, static_cast<int>(i)},
             concat("is to run beside the next action of its worker, ",
                    last ? std::string("but it is the last one")
                         : concat("which is ",
                                  action_name(actions[i + 1], schedule.shape.microbatches)),
                    "; expected a forward beside a backward of another pass"));
    }
  }
}

/// Checks that no slice of a micro-batch comes before one that it needs, or has its keys moved to
/// the host, which later slices read.
void check_slices(const Schedule& schedule, const PassIndex& index) {
  for (int w = 0; schedule.shape.slices > 1 && w < schedule.shape.workers(); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i)
      if (is_host_copy(schedule.workers[as_size(w)][as_size(i)].kind))
        refuse(schedule, {w, i}, "moves keys of a slice, which other slices read meanwhile");
  const ActionPlace early = slice_out_of_order(schedule, index);
  if (early == kNowhere) return;
  const Action& a = schedule.workers[as_size(early.first)][as_size(early.second)];
  refuse(schedule, early,
         a.kind == ActionKind::Forward
             ? "comes before the forward of the slice before it, to whose keys it attends"
             : "comes before the backward of the slice behind it, which gives its keys a gradient");
}

/// Checks that no worker has begun a mini-batch when an update of an earlier one needs the
/// gradients of all stages.
void check_meetings(const Schedule& schedule) {
  const ActionPlace late = schedule.updates_meet ? minibatch_out_of_turn(schedule) : kNowhere;
  if (late != kNowhere)
    refuse(schedule, late,
           "follows an action of a later mini-batch, although every update needs the gradients of "
           "all stages");
}

}  // namespace

std::vector<ActionPlace> validate(const Schedule& schedule) {
  check_ranges(schedule);
  check_complete(schedule);
  check_pairs(schedule);
  const PassIndex index(schedule);
  check_halves(schedule, index);
  check_slices(schedule, index);
  if (schedule.shape.training) {
    check_recomputations(schedule);
    check_offloads(schedule);
    check_gradients(schedule, index);
    check_meetings(schedule);
  }
  std::vector<ActionPlace> order = execution_order(schedule, index);
  try {
    const Versions versions = resolve_versions(schedule, index);
    check_weights_of_halves(schedule, index, versions);
    check_weights_of_recomputations(schedule, index, versions);
  } catch (const MissingWeights& error) {
    throw InvalidSchedule(error.message(), error.place());
  }
  return order;
}

}  // namespace pipewright
