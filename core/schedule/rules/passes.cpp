// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/rules.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/execution_order.h"
#include "core/schedule/invalid_schedule.h"

namespace pipewright {
namespace {

bool learns(const Schedule& schedule, const Action& backward) {
  return std::ranges::count(schedule.learns_from[as_size(backward.stage)], backward.loss) > 0;
}

/// The passes and host copies that have been seen.
class Seen {
 public:
  explicit Seen(const PassIndex& index) : slots_(index.slots()) {}

  /// Returns false if it was there already.
  bool insert(const Action& action) {
    std::vector<bool>& there = there_[row_of(action)];
    if (there.empty()) there.resize(std::max(slots_.forwards(), slots_.backwards()), false);
    const std::size_t slot = slot_of(action);
    const bool fresh = !there[slot];
    there[slot] = true;
    return fresh;
  }
  bool contains(const Action& action) const {
    const std::vector<bool>& there = there_[row_of(action)];
    const std::size_t slot = slot_of(action);
    return slot < there.size() && there[slot];
  }

 private:
  /// A backward and the first half of one are the same.
  static std::size_t row_of(const Action& action) {
    return static_cast<std::size_t>(is_backward(action.kind) ? ActionKind::Backward : action.kind);
  }
  std::size_t slot_of(const Action& action) const {
    return is_part_of_backward(action.kind) ? slots_.backward(action, action.stage)
                                            : slots_.forward(action, action.stage);
  }

  const PassSlots& slots_;
  std::array<std::vector<bool>, kActionKinds.size()> there_;
};

/// Some pass of the same stage and micro-batch, to be marked as the culprit where another is
/// missing.
ActionPlace some_of_pass(const Schedule& schedule, const Action& like) {
  const int worker = schedule.shape.worker_of(like.stage, like.replica);
  const auto& actions = schedule.workers[as_size(worker)];
  const auto of_pass = std::ranges::find_if(actions, [&](const Action& a) {
    return is_pass(a.kind) && a.stage == like.stage && a.minibatch == like.minibatch &&
           a.microbatch == like.microbatch;
  });
  return of_pass == actions.end()
             ? kNowhere
             : ActionPlace{worker, static_cast<int>(of_pass - actions.begin())};
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

/// Notes a pass or a host copy, which has to be the only one, in a place of its own.
void see(const Schedule& schedule, ActionPlace place, const Action& a, Seen& seen) {
  if (!seen.insert(a)) refuse(schedule, place, "happens twice");
  if (makes_weight_gradient(a.kind) && !learns(schedule, a))
    refuse(schedule, place,
           concat("goes back from the loss of stage ", a.loss,
                  ", from which its stage does not learn"));
  if (a.kind != ActionKind::Head) return;
  if (!std::ranges::binary_search(schedule.auxiliary, a.stage))
    refuse(schedule, place, "belongs to a stage without an auxiliary head");
  if (a.loss != a.stage)
    refuse(schedule, place,
           concat("names the loss of stage ", a.loss, "; expected that of its own stage"));
}

/// Refuses a stage's micro-batch of which a pass is missing.
void need_all(const Schedule& schedule, Action pass, const Seen& seen) {
  const auto need = [&](ActionKind kind, int loss) {
    pass.kind = kind;
    pass.loss = loss;
    if (!seen.contains(pass)) refuse_gap(schedule, pass);
  };
  need(ActionKind::Forward, 0);
  if (!schedule.shape.training) return;
  for (const int loss : schedule.learns_from[as_size(pass.stage)]) need(ActionKind::Backward, loss);
  if (std::ranges::binary_search(schedule.auxiliary, pass.stage))
    need(ActionKind::Head, pass.stage);
}

}  // namespace

void check_complete(const Schedule& schedule, const PassIndex& index) {
  const PipelineShape& shape = schedule.shape;
  Seen seen(index);
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (a.kind != ActionKind::Forward && !shape.training)
      refuse(schedule, place, "has no place in an evaluation, which consists of forwards only");
    if (of_microbatch(a.kind)) see(schedule, place, a, seen);
  });
  for (int replica = 0; replica < shape.replicas; ++replica)
    for (int m = 0; m < shape.minibatches; ++m)
      for (int u = 0; u < shape.microbatches; ++u)
        for (int k = 0; k < shape.stages; ++k)
          need_all(schedule, {.stage = k, .replica = replica, .minibatch = m, .microbatch = u},
                   seen);
}

void check_pairs(const Schedule& schedule, const PassIndex&) {
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    const auto& actions = schedule.workers[as_size(place.first)];
    const std::size_t i = as_size(place.second);
    if (!a.with_next || is_fused_pair(actions, i)) return;
    const bool last = i + 1 == actions.size();
    refuse(
        schedule, place,
        concat("is to run beside the next action of its worker, ",
               last ? std::string("but it is the last one")
                    : concat("which is ", action_name(actions[i + 1], schedule.shape.microbatches)),
               "; expected a forward beside a backward of another pass"));
  });
}

void check_halves(const Schedule& schedule, const PassIndex& index) {
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (a.kind == ActionKind::BackwardInput && learns(schedule, a) &&
        index.weight_backward(a) == kNowhere)
      refuse(schedule, place,
             concat("passes the gradient of the loss of stage ", a.loss,
                    " on without a weight-only backward, but its stage learns from that loss"));
    if (a.kind != ActionKind::BackwardWeight) return;
    const ActionPlace first = index.backward(a, a.stage);
    if (first == kNowhere || action_at(schedule, first).kind != ActionKind::BackwardInput)
      refuse(schedule, place, "has no input-only backward of the same pass before it");
  });
}

void check_recomputations(const Schedule& schedule, const PassIndex& index) {
  const auto recomputes = [](const Action& a) { return a.kind == ActionKind::Recompute; };
  if (!any_action(schedule, recomputes)) return;
  const PassSlots& slots = index.slots();
  std::vector<bool> begun(slots.forwards(), false);  // whether a backward of each forward has begun
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (is_backward(a.kind)) begun[slots.forward(a, a.stage)] = true;
    if (recomputes(a) && begun[slots.forward(a, a.stage)])
      refuse(schedule, place, "comes after a backward that needs its activations");
  });
}

void check_gradients(const Schedule& schedule, const PassIndex& index) {
  struct Pending {
    ActionPlace place = kNowhere;  ///< of the last gradient not yet applied
    bool reduced = false;
  };
  const std::size_t replicas = as_size(schedule.shape.replicas);
  std::vector<Pending> stages(as_size(schedule.shape.stages) * replicas);
  const auto refuse_left = [&](int worker) {
    for (const Pending& pending : stages)
      if (pending.place != kNowhere && pending.place.first == worker)
        refuse(schedule, pending.place, "makes a gradient that no update applies");
  };
  int worker = 0;
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (place.first != worker) refuse_left(std::exchange(worker, place.first));
    Pending& pending = stages[as_size(a.stage) * replicas + as_size(a.replica)];
    if (a.kind == ActionKind::BackwardInput && index.consumer_of(a) == kNowhere &&
        index.weight_backward(a) == kNowhere)
      refuse(schedule, place,
             concat("passes the gradient of the loss of stage ", a.loss,
                    " on, but no earlier stage takes it"));
    if (adds_gradient(a.kind)) {
      if (pending.reduced)
        refuse(schedule, place,
               "adds to a gradient that has been reduced over the replicas already");
      pending = {place, false};
    }
    if (of_microbatch(a.kind)) return;
    const bool reduces = a.kind == ActionKind::Reduce;
    if (pending.place == kNowhere)
      refuse(schedule, place, reduces ? "has no gradient to reduce" : "has no gradient to apply");
    if (reduces && pending.reduced)
      refuse(schedule, place, "reduces a gradient that has been reduced already");
    if (!reduces && schedule.shape.replicas > 1 && !pending.reduced)
      refuse(schedule, place, "applies a gradient that its replicas have not reduced");
    if (action_at(schedule, pending.place).minibatch != a.minibatch)
      refuse(schedule, place, "follows a gradient of another mini-batch than its own");
    if (reduces)
      pending.reduced = true;
    else
      pending = {};
  });
  refuse_left(worker);
}

void check_meetings(const Schedule& schedule, const PassIndex&) {
  const ActionPlace late = schedule.updates_meet ? minibatch_out_of_turn(schedule) : kNowhere;
  if (late != kNowhere)
    refuse(schedule, late,
           "follows an action of a later mini-batch, although every update needs the gradients of "
           "all stages");
}

void check_weights_of_halves(const Schedule& schedule, const PassIndex& index,
                             const Versions& versions) {
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (a.kind == ActionKind::BackwardWeight &&
        versions.at(place).key != versions.at(index.backward(a, a.stage)).key)
      refuse(schedule, place,
             "computes with other weights than the input-only backward of the same pass");
  });
}

void check_weights_of_recomputations(const Schedule& schedule, const PassIndex& index,
                                     const Versions& versions) {
  for_each_action(schedule, [&](ActionPlace place, const Action& a) {
    if (a.kind != ActionKind::Recompute) return;
    const WeightKey& key = versions.at(place).key;
    if (key == versions.at(index.forward(a)).key) return;
    Action backward = a;
    for (backward.loss = a.stage; backward.loss < schedule.shape.stages; ++backward.loss)
      if (const ActionPlace needs = index.backward(backward, a.stage);
          needs != kNowhere && versions.at(needs).key != key)
        refuse(schedule, place,
               "computes with other weights than its forward and than the backwards that need it");
  });
}

}  // namespace pipewright
