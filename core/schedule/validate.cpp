#include "core/schedule/validate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/deadlock.h"
#include "core/schedule/pass_slots.h"
#include "core/schedule/versions.h"
#include "core/schedule/worker_set.h"

namespace pipewright {
namespace {

bool is_backward(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::BackwardInput;
}

bool learns(const Schedule& schedule, const Action& backward) {
  return std::ranges::count(schedule.learns_from[as_size(backward.stage)], backward.loss) > 0;
}

[[noreturn]] void fail(const Schedule& schedule, ActionPlace culprit, const std::string& message) {
  const Action& action = schedule.workers[as_size(culprit.first)][as_size(culprit.second)];
  throw InvalidSchedule(concat(action_name(action, schedule.shape.microbatches), " ", message),
                        culprit);
}

/// Numbers within their ranges, and every action on the worker that holds its stage.
void check_ranges(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  auto refuse = [](const std::string& message) {
    throw Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message));
  };
  if (shape.stages < 1 || shape.replicas < 1 || shape.microbatches < 1 || shape.minibatches < 1)
    refuse("a shape needs at least one stage, replica, micro-batch and mini-batch");
  if (!shape.placement.empty() && shape.placement.size() != as_size(shape.stages))
    refuse("its placement does not name one worker per stage");
  if (schedule.workers.size() != as_size(shape.workers()))
    refuse(concat("it has ", schedule.workers.size(), " workers, its shape ", shape.workers()));
  if (schedule.learns_from.size() != as_size(shape.stages))
    refuse("learns_from does not name the losses of every stage");
  auto in = [](int value, int end) { return value >= 0 && value < end; };
  for (std::size_t i = 0; i < shape.skips.size(); ++i) {
    const auto& [from, to, gradient] = shape.skips[i];
    if (!in(from, shape.stages) || !in(to, shape.stages) || from >= to)
      refuse(concat("a skip connection from stage ", from, " to stage ", to));
    for (std::size_t j = 0; j < i; ++j)
      if (shape.skips[j].from > from || (shape.skips[j].to > from && shape.skips[j].to < to))
        refuse("its skip connections do not take back first what they put aside last");
  }
  for (int k = 0; k < shape.stages; ++k)
    for (const int loss : schedule.learns_from[as_size(k)])
      if (loss < k || loss >= shape.stages)
        refuse(concat("stage ", k, " learns from the loss of stage ", loss,
                      ", which is none from it on"));
  for (std::size_t i = 0; i < schedule.auxiliary.size(); ++i)
    if (!in(schedule.auxiliary[i], shape.stages - 1) ||
        (i > 0 && schedule.auxiliary[i] <= schedule.auxiliary[i - 1]))
      refuse("its auxiliary heads are not stages before the last, in ascending order");
  for (int w = 0; w < shape.workers(); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      auto place = [&] { return concat("worker ", w, ", action ", i, " (", action_name(a), ")"); };
      if (!in(a.stage, shape.stages) || !in(a.replica, shape.replicas) ||
          !in(a.minibatch, shape.minibatches) || !in(a.microbatch, shape.microbatches) ||
          !in(a.loss, shape.stages) || !in(a.weights.rule, static_cast<int>(schedule.rules.size())))
        refuse(
            concat(place(),
                   " names a stage, replica, mini-batch, micro-batch, loss or rule out of range"));
      const bool backward = is_backward(a.kind) || a.kind == ActionKind::BackwardWeight;
      if (backward && a.loss < a.stage)
        refuse(
            concat(place(), " is of the loss of stage ", a.loss, ", which comes before its own"));
      if (shape.worker_of(a.stage, a.replica) != w)
        refuse(concat(place(), " belongs on worker ", shape.worker_of(a.stage, a.replica)));
    }
}

/// A set of actions, few of each micro-batch at a stage. The first four kinds that come of a pass
/// lie in flat memory, others, of stages with many losses, do not.
class PassKeys {
 public:
  PassKeys(std::size_t passes, std::uint32_t kinds) : kinds_(kinds), first_(passes) {}

  /// False: it was there. `kind`: from 0 to below the kinds there are.
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
  std::vector<std::array<std::uint32_t, 4>> first_;  ///< 0: none
  std::unordered_set<std::uint64_t> others_;
};

/// The first action of the same pass that is there, to be marked where another one is missing.
ActionPlace some_of_pass(const Schedule& schedule, const Action& like) {
  const int worker = schedule.shape.worker_of(like.stage, like.replica);
  const auto& actions = schedule.workers[as_size(worker)];
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& a = actions[as_size(i)];
    const bool pass = a.kind != ActionKind::Reduce && a.kind != ActionKind::Update;
    if (pass && a.stage == like.stage && a.minibatch == like.minibatch &&
        a.microbatch == like.microbatch)
      return {worker, i};
  }
  return kNowhere;
}

[[noreturn]] void refuse_gap(const Schedule& schedule, const Action& missing) {
  const bool of_loss = is_backward(missing.kind);
  throw InvalidSchedule(
      concat("it has no ", kind_name(missing.kind), " of stage ", missing.stage, ", replica ",
             missing.replica, ", mini-batch ", missing.minibatch, ", micro-batch ",
             missing.microbatch,
             of_loss ? concat(", for the loss of stage ", missing.loss) : std::string()),
      some_of_pass(schedule, missing));
}

/// Every pass there exactly once, and no other.
void check_complete(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  const auto microbatches = as_size(shape.microbatches), replicas = as_size(shape.replicas),
             stages = as_size(shape.stages);
  PassKeys seen(as_size(shape.minibatches) * microbatches * replicas * stages,
                static_cast<std::uint32_t>(shape.stages) * 8);
  auto pass = [&](int stage, int replica, int minibatch, int microbatch) {
    return ((as_size(minibatch) * microbatches + as_size(microbatch)) * replicas +
            as_size(replica)) *
               stages +
           as_size(stage);
  };
  auto kind_of = [](ActionKind kind, int loss) {
    if (kind == ActionKind::BackwardInput) kind = ActionKind::Backward;
    return static_cast<std::uint32_t>(loss) * 8 + static_cast<std::uint32_t>(kind);
  };
  for (int w = 0; w < shape.workers(); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind == ActionKind::Reduce || a.kind == ActionKind::Update) {
        if (!shape.training) fail(schedule, {w, i}, "has no place in an evaluation: forwards only");
        continue;
      }
      if (a.kind != ActionKind::Forward && !shape.training)
        fail(schedule, {w, i}, "has no place in an evaluation: forwards only");
      const bool of_no_loss = a.kind == ActionKind::Forward || a.kind == ActionKind::Recompute;
      const int loss = of_no_loss ? 0 : a.kind == ActionKind::Head ? a.stage : a.loss;
      if (!seen.insert(pass(a.stage, a.replica, a.minibatch, a.microbatch), kind_of(a.kind, loss)))
        fail(schedule, {w, i}, "happens twice");
      if ((a.kind == ActionKind::Backward || a.kind == ActionKind::BackwardWeight) &&
          !learns(schedule, a))
        fail(schedule, {w, i},
             concat("learns from the loss of stage ", a.loss,
                    ", which its stage does not learn from"));
      if (a.kind != ActionKind::Head) continue;
      if (!std::ranges::binary_search(schedule.auxiliary, a.stage))
        fail(schedule, {w, i}, "is of a stage without an auxiliary head");
      if (a.loss != a.stage)
        fail(schedule, {w, i},
             concat("names the loss of stage ", a.loss, " instead of its own stage's"));
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

/// What is recomputed is so with its forward's weights, and before the backwards that need it.
void check_recomputations(const Schedule& schedule) {
  const bool any = std::ranges::any_of(schedule.workers, [](const std::vector<Action>& worker) {
    return std::ranges::any_of(worker,
                               [](const Action& a) { return a.kind == ActionKind::Recompute; });
  });
  if (!any) return;
  const PassSlots slots(schedule);
  std::vector<bool> begun(slots.forwards(), false);  // backwards of each forward
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (is_backward(a.kind)) begun[slots.forward(a, a.stage)] = true;
      if (a.kind != ActionKind::Recompute) continue;
      if (begun[slots.forward(a, a.stage)])
        fail(schedule, {w, i}, "comes after a backward that needs it");
      if (a.weights != Weights::of_forward())
        fail(schedule, {w, i}, "does not compute with the weights of its forward");
    }
}

/// A stage that learns from a loss does more than relay it; a BackwardWeight ends what a
/// BackwardInput has begun on its worker.
void check_halves(const Schedule& schedule, const PassIndex& index) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind == ActionKind::BackwardInput && learns(schedule, a) &&
          index.weight_backward(a) == kNowhere)
        fail(schedule, {w, i},
             concat("only relays the loss of stage ", a.loss, ", but its stage learns from it"));
      if (a.kind != ActionKind::BackwardWeight) continue;
      const ActionPlace first = index.backward(a, a.stage);
      const bool half =
          first != kNowhere && schedule.workers[as_size(first.first)][as_size(first.second)].kind ==
                                   ActionKind::BackwardInput;
      if (!half) fail(schedule, {w, i}, "ends no input-only backward: there is none of its pass");
    }
}

/// Both halves of a backward compute with the same weights.
void check_weights_of_halves(const Schedule& schedule, const PassIndex& index,
                             const Versions& versions) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i) {
      const Action& a = schedule.workers[as_size(w)][as_size(i)];
      if (a.kind != ActionKind::BackwardWeight) continue;
      const ActionPlace first = index.backward(a, a.stage);
      if (versions.workers[as_size(w)][as_size(i)].key !=
          versions.workers[as_size(first.first)][as_size(first.second)].key)
        fail(schedule, {w, i}, "computes with other weights than its input-only backward");
    }
}

/// Relays go to somebody; every weight gradient is taken by exactly one later update, reduced
/// first where there are replicas.
void check_gradients(const Schedule& schedule, const PassIndex& index) {
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w) {
    const auto& actions = schedule.workers[as_size(w)];
    struct Pending {
      int place = -1;  ///< the last gradient not yet taken
      bool reduced = false;
    };
    std::vector<Pending> stages(as_size(schedule.shape.stages) * as_size(schedule.shape.replicas));
    for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
      const Action& a = actions[as_size(i)];
      Pending& pending =
          stages[as_size(a.stage) * as_size(schedule.shape.replicas) + as_size(a.replica)];
      switch (a.kind) {
        case ActionKind::BackwardInput:
          if (index.consumer_of(a) == kNowhere && index.weight_backward(a) == kNowhere)
            fail(schedule, {w, i}, concat("relays the loss of stage ", a.loss, " to nobody"));
          break;
        case ActionKind::Head:
        case ActionKind::Backward:
        case ActionKind::BackwardWeight:
          if (pending.reduced) fail(schedule, {w, i}, "adds to a gradient that is reduced already");
          pending = {i, false};
          break;
        case ActionKind::Reduce:
          if (pending.place < 0) fail(schedule, {w, i}, "has no gradient to reduce");
          if (pending.reduced) fail(schedule, {w, i}, "reduces a gradient that is reduced already");
          if (actions[as_size(pending.place)].minibatch != a.minibatch)
            fail(schedule, {w, i}, "does not end with a gradient of its own mini-batch");
          pending.reduced = true;
          break;
        case ActionKind::Update:
          if (pending.place < 0) fail(schedule, {w, i}, "has no gradient to apply");
          if (schedule.shape.replicas > 1 && !pending.reduced)
            fail(schedule, {w, i}, "applies a gradient that its replicas have not reduced");
          if (actions[as_size(pending.place)].minibatch != a.minibatch)
            fail(schedule, {w, i}, "does not end with a gradient of its own mini-batch");
          pending = {};
          break;
        case ActionKind::Forward:
        case ActionKind::Recompute: break;
      }
    }
    for (const Pending& pending : stages)
      if (pending.place >= 0)
        fail(schedule, {w, pending.place}, "makes a gradient that no update applies");
  }
}

/// Runs the schedule without computing: in rounds, each worker does its next action if its inputs
/// are there and, with bounded links, its receiver has room. Who waits is not looked at again
/// before the worker it waits for has done something.
class Progress {
 public:
  Progress(const Schedule& schedule, const PassIndex& index)
      : schedule_(schedule),
        index_(index),
        done_(schedule.workers.size(), 0),
        reduced_(as_size(schedule.shape.stages * schedule.shape.replicas), 0),
        waiting_(2 * reduced_.size(), 0),
        asleep_(schedule.workers.size()) {}

  std::vector<ActionPlace> order() {
    std::vector<ActionPlace> all;
    all.reserve(actions());
    const int workers = static_cast<int>(done_.size());
    WorkerSet round(workers), next_round(workers);  // who may have something to do
    for (int w = 0; w < workers; ++w) round.insert(w);
    for (bool moved = true; moved; std::swap(round, next_round)) {
      moved = false;
      next_round.clear();
      for (int w = round.from(0); w >= 0; w = round.from(w + 1)) {
        if (finished(w)) continue;
        if (!ready(next(w))) {
          if (!sleep(w)) next_round.insert(w);
          continue;
        }
        account(next(w));
        all.emplace_back(w, done_[as_size(w)]++);
        moved = true;
        next_round.insert(w);
        for (const int sleeper : asleep_[as_size(w)])
          (sleeper > w ? round : next_round).insert(sleeper);
        asleep_[as_size(w)].clear();
      }
    }
    if (all.size() < actions()) refuse_deadlock();
    return all;
  }

 private:
  const Action& next(int w) const {
    return schedule_.workers[as_size(w)][as_size(done_[as_size(w)])];
  }
  bool finished(int w) const {
    return as_size(done_[as_size(w)]) == schedule_.workers[as_size(w)].size();
  }
  bool happened(ActionPlace place) const {
    return place == kNowhere || done_[as_size(place.first)] > place.second;
  }
  static bool has_input(const Action& a) {
    return a.kind != ActionKind::Reduce && a.kind != ActionKind::Update &&
           !(a.kind == ActionKind::Forward && a.stage == 0);
  }
  bool crosses(int from, int to, int replica) const {
    return schedule_.shape.worker_of(from, replica) != schedule_.shape.worker_of(to, replica);
  }

  bool input_ready(const Action& a) const {
    if (!has_input(a)) return true;
    const ActionPlace input = index_.input_of(a);
    return input != kNowhere && happened(input);
  }
  /// All replicas have come to the same Reduce, or are past it.
  bool replicas_ready(const Action& a) const {
    return a.kind != ActionKind::Reduce || late_replica(a) < 0;
  }
  /// The worker of the first replica that has not come to this Reduce; −1: all have.
  int late_replica(const Action& a) const {
    const int mine = reduced(a.stage, a.replica);
    for (int r = 0; r < schedule_.shape.replicas; ++r) {
      const int w = schedule_.shape.worker_of(a.stage, r);
      if (reduced(a.stage, r) > mine) continue;
      if (finished(w)) return w;
      const Action& other = next(w);
      if (other.kind != ActionKind::Reduce || other.stage != a.stage ||
          other.minibatch != a.minibatch)
        return w;
    }
    return -1;
  }
  int reduced(int stage, int replica) const {
    return reduced_[as_size(replica * schedule_.shape.stages + stage)];
  }
  bool room(const Action& a) const {
    const int capacity = schedule_.shape.link_capacity;
    if (capacity == 0) return true;
    const auto link = link_of(a);
    return link.second < 0 || waiting(link) < capacity;
  }
  int& waiting(std::pair<int, int> link) {
    return waiting_[as_size(2 * schedule_.shape.stages * link.first + link.second)];
  }
  int waiting(std::pair<int, int> link) const {
    return waiting_[as_size(2 * schedule_.shape.stages * link.first + link.second)];
  }
  bool ready(const Action& a) const { return input_ready(a) && room(a) && replicas_ready(a); }

  /// Until the worker that it waits for moves. False: several might be that one.
  bool sleep(int w) {
    const Action& a = next(w);
    int other = -1;
    if (!input_ready(a)) {
      other = index_.input_of(a).first;
      if (other < 0) return true;  // for ever
    } else if (!room(a)) {
      other = receiver_of(link_of(a));
    }
    if (other >= 0) asleep_[as_size(other)].push_back(w);
    return other >= 0;
  }

  std::size_t actions() const {
    std::size_t all = 0;
    for (const auto& worker : schedule_.workers) all += worker.size();
    return all;
  }

  /// (edge and direction and replica) that the action sends on; second < 0: it sends nothing.
  std::pair<int, int> link_of(const Action& a) const {
    const int stages = schedule_.shape.stages;
    if (a.kind == ActionKind::Forward && a.stage + 1 < stages &&
        crosses(a.stage, a.stage + 1, a.replica))
      return {a.replica, 2 * a.stage};
    if (is_backward(a.kind) && a.stage > 0 && crosses(a.stage, a.stage - 1, a.replica) &&
        index_.consumer_of(a) != kNowhere)
      return {a.replica, 2 * (a.stage - 1) + 1};
    return {0, -1};
  }

  int receiver_of(std::pair<int, int> link) const {
    return schedule_.shape.worker_of(link.second / 2 + (link.second % 2 == 0 ? 1 : 0), link.first);
  }

  void account(const Action& a) {
    if (a.kind == ActionKind::Reduce)
      ++reduced_[as_size(a.replica * schedule_.shape.stages + a.stage)];
    if (schedule_.shape.link_capacity == 0) return;
    const bool local = a.kind == ActionKind::Head || a.kind == ActionKind::Recompute ||
                       a.kind == ActionKind::BackwardWeight;
    if (has_input(a) && !local) {
      const auto [worker, position] = index_.input_of(a);
      const auto link = link_of(schedule_.workers[as_size(worker)][as_size(position)]);
      if (link.second >= 0) --waiting(link);
    }
    if (const auto link = link_of(a); link.second >= 0) ++waiting(link);
  }

  [[noreturn]] void refuse_deadlock() const {
    std::vector<Wait> waits;
    for (int w = 0; w < static_cast<int>(done_.size()); ++w)
      waits.push_back(finished(w) ? Wait{} : wait_of(w));
    const Deadlock deadlock = explain_deadlock(schedule_, index_, waits);
    throw InvalidSchedule(deadlock.message, deadlock.root);
  }

  /// What the next action of a worker waits for that can never start.
  Wait wait_of(int w) const {
    const Action& a = next(w);
    Wait wait{.action = {w, done_[as_size(w)]}};
    if (!input_ready(a)) {
      wait.what = Wait::For::Input;
      wait.input = index_.input_of(a);
      wait.worker = wait.input.first;
    } else if (!room(a)) {
      wait.what = Wait::For::Room;
      wait.worker = receiver_of(link_of(a));
    } else {
      wait.what = Wait::For::Reduction;
      wait.worker = late_replica(a);
    }
    return wait;
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  std::vector<int> done_;     ///< per worker
  std::vector<int> reduced_;  ///< per (replica, stage): reductions done
  std::vector<int> waiting_;  ///< messages on a link, per replica and link_of()'s second
  std::vector<std::vector<int>> asleep_;  ///< per worker: who waits for it
};

}  // namespace

InvalidSchedule::InvalidSchedule(const std::string& message, ActionPlace culprit)
    : Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message),
            culprit == kNowhere ? std::string()
                                : concat("worker ", culprit.first, ", action ", culprit.second)),
      culprit_(culprit) {}

std::vector<ActionPlace> validate(const Schedule& schedule) {
  check_ranges(schedule);
  check_complete(schedule);
  const PassIndex index(schedule);
  check_halves(schedule, index);
  if (schedule.shape.training) {
    check_recomputations(schedule);
    check_gradients(schedule, index);
  }
  std::vector<ActionPlace> order = Progress(schedule, index).order();
  try {
    check_weights_of_halves(schedule, index, resolve_versions(schedule, index));
  } catch (const MissingWeights& error) {
    throw InvalidSchedule(error.message(), error.place());
  }
  return order;
}

}  // namespace pipewright
