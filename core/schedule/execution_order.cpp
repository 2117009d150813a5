// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/execution_order.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/base/as_size.h"
#include "core/schedule/deadlock.h"
#include "core/schedule/invalid_schedule.h"

namespace pipewright {
namespace {

/// A set of workers, walked in ascending order while it grows.
class WorkerSet {
 public:
  explicit WorkerSet(int workers) : words_(as_size(workers) / 64 + 1, 0) {}

  void insert(int worker) { words_[as_size(worker) / 64] |= bit(worker); }
  void clear() { words_.assign(words_.size(), 0); }
  /// The first one from `worker` on; −1: none.
  int from(int worker) const {
    std::size_t at = as_size(worker) / 64;
    if (at >= words_.size()) return -1;
    std::uint64_t word = words_[at] & ~(bit(worker) - 1);
    while (word == 0) {
      if (++at == words_.size()) return -1;
      word = words_[at];
    }
    return static_cast<int>(at) * 64 + std::countr_zero(word);
  }

 private:
  static std::uint64_t bit(int worker) { return std::uint64_t{1} << (as_size(worker) % 64); }

  std::vector<std::uint64_t> words_;
};

bool takes_from_own_stage(ActionKind kind) {
  const ActionInput input = facts_of(kind).input;
  return input == ActionInput::OwnForward || input == ActionInput::FirstHalf;
}

/// Runs the schedule without computing: in rounds, each worker does its next action if its input is
/// there and, with bounded links, its receiver has room. A waiting worker is not tried again before
/// the worker that it waits for has done something.
class OrderProgress {
 public:
  OrderProgress(const Schedule& schedule, const PassIndex& index)
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
    WorkerSet round(workers), next_round(workers);  // workers to try
    for (int w = 0; w < workers; ++w) round.insert(w);
    for (bool moved = true; moved; std::swap(round, next_round)) {
      moved = false;
      next_round.clear();
      for (int w = round.from(0); w >= 0; w = round.from(w + 1)) {
        if (finished(w)) continue;
        if (!ready(w)) {
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
  /// The backward of the fused pair that the worker's next action begins; null if it begins none.
  const Action* beside(int w) const {
    const auto& actions = schedule_.workers[as_size(w)];
    const std::size_t at = as_size(done_[as_size(w)]);
    return is_fused_pair(actions, at) ? &actions[at + 1] : nullptr;
  }
  bool finished(int w) const {
    return as_size(done_[as_size(w)]) == schedule_.workers[as_size(w)].size();
  }
  bool happened(ActionPlace place) const {
    return place == kNowhere || done_[as_size(place.first)] > place.second;
  }
  bool crosses(int from, int to, int replica) const {
    return schedule_.shape.worker_of(from, replica) != schedule_.shape.worker_of(to, replica);
  }

  bool input_ready(const Action& a) const {
    if (!has_input(a)) return true;
    const ActionPlace input = index_.input_of(a);
    return input != kNowhere && happened(input);
  }
  /// Whether all replicas have reached the same Reduce, or are past it.
  bool replicas_ready(const Action& a) const {
    return a.kind != ActionKind::Reduce || late_replica(a) < 0;
  }
  /// The worker of the first replica that has not reached this Reduce; −1 if all have.
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
  /// The next action whose input is missing: the worker's own or, of a fused pair, whose halves
  /// begin together, its second; null if all inputs are there.
  const Action* without_input(int w) const {
    if (!input_ready(next(w))) return &next(w);
    const Action* const second = beside(w);
    return second != nullptr && !input_ready(*second) ? second : nullptr;
  }
  bool ready(int w) const {
    return without_input(w) == nullptr && room(next(w)) && replicas_ready(next(w));
  }

  /// Lets a worker sleep until the one that it waits for does something. False if it may wait for
  /// several; then it is tried in every round.
  bool sleep(int w) {
    const Action& a = next(w);
    int other = -1;
    if (const Action* const waiting = without_input(w)) {
      other = index_.input_of(*waiting).first;
      if (other < 0) return true;  // it never wakes
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

  /// The link that the action sends on: (replica, 2 · edge + direction); second < 0: it sends
  /// nothing.
  std::pair<int, int> link_of(const Action& a) const {
    const int stages = schedule_.shape.stages;
    const ActionOutput output = facts_of(a.kind).output;
    if (output == ActionOutput::Activation && a.stage + 1 < stages &&
        crosses(a.stage, a.stage + 1, a.replica))
      return {a.replica, 2 * a.stage};
    if (output == ActionOutput::Gradient && a.stage > 0 &&
        crosses(a.stage, a.stage - 1, a.replica) && index_.consumer_of(a) != kNowhere)
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
    if (has_input(a) && !takes_from_own_stage(a.kind)) {
      const auto link = link_of(action_at(schedule_, index_.input_of(a)));
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

  /// The reason why the next action of a stuck worker cannot start.
  Wait wait_of(int w) const {
    const Action& a = next(w);
    Wait wait{.action = {w, done_[as_size(w)]}};
    if (const Action* const waiting = without_input(w)) {
      wait.what = Wait::For::Input;
      wait.beside = waiting != &a;
      wait.input = index_.input_of(*waiting);
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
  std::vector<int> done_;                 ///< per worker: actions done
  std::vector<int> reduced_;              ///< per (replica, stage): reductions done
  std::vector<int> waiting_;              ///< messages on each link of link_of()
  std::vector<std::vector<int>> asleep_;  ///< per worker: the workers that wait for it
};

}  // namespace

ActionPlace minibatch_out_of_turn(const Schedule& schedule) {
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    const auto& actions = schedule.workers[w];
    const auto back =
        std::ranges::adjacent_find(actions, std::ranges::greater{}, &Action::minibatch);
    if (back != actions.end())
      return {static_cast<int>(w), static_cast<int>(back - actions.begin()) + 1};
  }
  return kNowhere;
}

std::vector<ActionPlace> execution_order(const Schedule& schedule, const PassIndex& index) {
  std::vector<ActionPlace> order = OrderProgress(schedule, index).order();
  const auto minibatch_of = [&](ActionPlace place) { return action_at(schedule, place).minibatch; };
  // Actions take their input from their own mini-batch, and no worker is at a later one by then, so
  // this order is legal, too.
  if (schedule.updates_meet)
    std::stable_sort(order.begin(), order.end(), [&](ActionPlace a, ActionPlace b) {
      return minibatch_of(a) < minibatch_of(b);
    });
  return order;
}

}  // namespace pipewright
