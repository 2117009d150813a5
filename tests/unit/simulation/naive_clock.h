// SPDX-License-Identifier: Apache-2.0
/// A second, independent simulation with a plain list of events in order of time, slow and without
/// the shortcuts of simulate(). Its results are compared with those of simulate().
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "core/simulation/simulate.h"
#include "tests/unit/schedule/naive_reading.h"

namespace pipewright::naive {

class Clock {
 public:
  Clock(const Schedule& schedule, const std::vector<StageCost>& costs, const Hardware& hardware)
      : schedule_(schedule), costs_(costs), hardware_(hardware), workers_(schedule.workers.size()) {
    for (const auto& worker : schedule.workers) spans_.emplace_back(worker.size());
  }

  std::vector<std::vector<Span>> spans() {
    for (std::size_t w = 0; w < workers_.size(); ++w) start(w);
    while (true) {
      if ((events_.empty() || events_.begin()->first > now_) && meet()) continue;
      if (events_.empty()) break;
      const auto first = events_.begin();
      now_ = first->first;
      const auto happen = first->second;
      events_.erase(first);
      happen();
    }
    return spans_;
  }

  /// Whether every worker has done all of its actions, after spans().
  bool ended() const {
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (current(w) != nullptr) return false;
    return true;
  }

 private:
  enum class Doing { Nothing, Computes, Sends, Waits, Meets };
  struct Worker {
    std::size_t next = 0;
    Doing doing = Doing::Nothing;
    bool half_done = false;  ///< its next action has run beside the one before it
  };
  struct Message {
    Pass output{};
    std::size_t from = 0, to = 0;
    std::int64_t bytes = 0;
  };
  using Edge = std::tuple<int, int, int>;  // stage, stage, replica

  void at(double time, std::function<void()> happen) { events_.emplace(time, std::move(happen)); }

  const Action* current(std::size_t w) const {
    const auto& actions = schedule_.workers[w];
    return workers_[w].next < actions.size() ? &actions[workers_[w].next] : nullptr;
  }
  std::size_t worker_of(int stage, int replica) const {
    return as_size(schedule_.shape.worker_of(stage, replica));
  }

  void start(std::size_t w) {
    const Action* action = current(w);
    if (action == nullptr || workers_[w].doing != Doing::Nothing) return;
    if (workers_[w].half_done) {
      workers_[w] = {workers_[w].next, Doing::Sends, false};
      return send(w);
    }
    if (action->kind == ActionKind::Reduce) return encode(w, *action);
    if (is_copy(*action)) return queue_copy(w, *action);
    const Action* const beside = action->with_next ? action + 1 : nullptr;
    if (!input_is_there(w, *action, 0)) return;
    if (beside != nullptr && !input_is_there(w, *beside, same_link(*action, *beside) ? 1 : 0))
      return;
    if (on_host_.contains(forward_of(beside != nullptr ? *beside : *action))) return;
    workers_[w].doing = Doing::Computes;
    take_input(*action);
    double seconds = seconds_of_action(w, *action);
    if (beside != nullptr) {
      take_input(*beside);
      const double other = seconds_of_action(w, *beside);
      const double longer = std::max(seconds, other), shorter = std::min(seconds, other);
      const StageCost &ahead = costs_[as_size(action->stage)],
                      &back = costs_[as_size(beside->stage)];
      if (ahead.fused_pair)  // beside which the passes code messages and predict weights as ever
        seconds += other + (*ahead.fused_pair + ahead.coding_forward + back.coding_backward -
                            work_of(*action) - work_of(*beside)) *
                               hardware_.time_factor(static_cast<int>(w));
      else
        seconds = longer + (1 - hardware_.overlap) * shorter;
      workers_[w].half_done = true;
      spans_[w][workers_[w].next + 1] = {now_, now_ + seconds};
    }
    spans_[w][workers_[w].next] = {now_, now_ + seconds};
    at(now_ + seconds, [this, w] {
      workers_[w].doing = Doing::Sends;
      send(w);
    });
  }

  /// The forward whose activations the pass needs; a forward needs none.
  static Pass forward_of(const Action& action) {
    const bool needs = action.kind != ActionKind::Forward && action.kind != ActionKind::Update;
    return needs ? pass('F', action, action.stage, -1) : Pass{};
  }

  /// The worker goes on while its copies wait for their turn.
  void queue_copy(std::size_t w, const Action& action) {
    const bool away = action.kind == ActionKind::Offload;
    if (away) on_host_.insert(forward_of(action));
    copies_to_do_[{w, away}].emplace_back(workers_[w].next, &action);
    go_on(w);
    copy(w, away);
  }

  /// Begins the next copy of a worker in a direction, if its turn has come.
  void copy(std::size_t w, bool away) {
    auto& queue = copies_to_do_[{w, away}];
    if (queue.empty() || copying_.contains({w, away})) return;
    const auto [position, action] = queue.front();
    const Pass forward = forward_of(*action);
    if (!away && !gone_.contains(forward)) return;
    queue.pop_front();
    copying_.insert({w, away});
    spans_[w][position].begin = now_;
    const auto bytes = static_cast<double>(costs_[as_size(action->stage)].activation_bytes);
    const double carried = now_ + bytes / hardware_.host->bandwidth;
    at(carried, [this, w, away] {
      copying_.erase({w, away});
      copy(w, away);
    });
    at(carried + hardware_.host->latency, [this, w, away, forward, position = position] {
      spans_[w][position].end = now_;
      if (away) {
        gone_.insert(forward);
        copy(w, false);
      } else {
        on_host_.erase(forward);
        start(w);
      }
    });
  }

  /// Whether the input has come, behind `ahead` others of its link that are taken with it. If
  /// inputs are taken in order the worker comes to receive it.
  bool input_is_there(std::size_t w, const Action& action, std::size_t ahead) {
    const Pass needed = input(schedule_, action);
    if (needed[0] == 0) return true;
    if (hardware_.taken_as_sent() && comes_by_link(action)) {
      const auto& sent = in_order_[{worker_of(needed[1], action.replica), w}];
      if (sent.size() <= ahead || sent[ahead] != needed) return false;
      receives_.insert(needed);
    }
    return (needed[1] == action.stage ? made_ : there_).contains(needed);
  }

  bool same_link(const Action& one, const Action& other) const {
    return comes_by_link(one) && comes_by_link(other) &&
           worker_of(input(schedule_, one)[1], one.replica) ==
               worker_of(input(schedule_, other)[1], other.replica);
  }

  void take_input(const Action& action) {
    const Pass needed = input(schedule_, action);
    if (needed[0] != 0 && needed[1] != action.stage) take(needed[1], action);
  }

  /// Seconds of a pass without what it does for versions of the weights.
  double work_of(const Action& action) const {
    const StageCost& cost = costs_[as_size(action.stage)];
    double seconds = seconds_of(cost, action.kind);
    if (is_backward(action) && (action.stage == 0 || !taken(action, action.stage - 1)))
      seconds -=
          action.kind == ActionKind::Backward ? cost.backward_sent : cost.backward_input_sent;
    return seconds;
  }

  /// Seconds of an action by itself; `action` is the worker's next one or the one beside it.
  double seconds_of_action(std::size_t w, const Action& action) {
    const StageCost& cost = costs_[as_size(action.stage)];
    double seconds = work_of(action);
    if (predicts_anew(action)) seconds += cost.prediction;
    if (action.kind == ActionKind::Update) {
      ++updates_[{action.stage, action.replica}];
      if (old_version_is_read_later(w)) seconds += cost.new_version;
      const auto& actions = schedule_.workers[w];
      if (cost.fused_prediction && workers_[w].next + 1 < actions.size()) {
        const Action& pass = actions[workers_[w].next + 1];
        if (pass.stage == action.stage && pass.replica == action.replica && predicts_anew(pass))
          seconds += *cost.fused_prediction;
      }
    }
    return seconds * hardware_.time_factor(static_cast<int>(w));
  }

  /// Whether a later pass of its stage reads the version that the worker's update ends, or one of
  /// the schedule after this one may.
  bool old_version_is_read_later(std::size_t w) const {
    const auto& actions = schedule_.workers[w];
    const Versions versions = resolve_versions(schedule_, PassIndex(schedule_));
    const std::size_t at = workers_[w].next;
    int updates = 0;
    for (const Action& each : actions)
      updates += each.kind == ActionKind::Update && each.stage == actions[at].stage &&
                         each.replica == actions[at].replica
                     ? 1
                     : 0;
    if (versions.workers[w][at].latest >= updates - schedule_.earlier_of(actions[at].stage))
      return true;
    for (std::size_t i = at + 1; i < actions.size(); ++i) {
      const WeightKey& key = versions.workers[w][i].key;
      if (actions[i].stage == actions[at].stage && actions[i].replica == actions[at].replica &&
          is_pass(actions[i].kind) && key.ahead == 0 &&
          key.version == versions.workers[w][at].latest)
        return true;
    }
    return false;
  }

  /// Whether the action needs a prediction that no earlier action has needed.
  bool predicts_anew(const Action& action) {
    const Weights& weights = action.weights;
    if (weights.ahead == 0 || weights.source == Weights::Source::OfForward) return false;
    const int version = weights.source == Weights::Source::Version
                            ? weights.version
                            : updates_[{action.stage, action.replica}];
    return predicted_.insert({action.stage, action.replica, version, weights.ahead, weights.rule})
        .second;
  }

  /// Whether another worker makes the input of an action.
  bool comes_by_link(const Action& action) const {
    const Pass needed = input(schedule_, action);
    return needed[0] != 0 && needed[1] != action.stage &&
           worker_of(needed[1], action.replica) != worker_of(action.stage, action.replica);
  }

  void take(int from, const Action& action) {
    if (worker_of(from, action.replica) == worker_of(action.stage, action.replica)) return;
    --waiting_[{from, action.stage, action.replica}];
    const std::size_t sender = worker_of(from, action.replica);
    const std::size_t receiver = worker_of(action.stage, action.replica);
    if (hardware_.taken_as_sent()) in_order_[{sender, receiver}].pop_front();
    at(now_, [this, sender] { send(sender); });
  }

  /// Queues the output of the worker's action, if it has a receiver and the link has room.
  void send(std::size_t w) {
    if (workers_[w].doing != Doing::Sends) return;
    const Action& action = *current(w);
    const int to = action.kind == ActionKind::Forward ? action.stage + 1
                   : is_backward(action)              ? action.stage - 1
                                                      : -1;
    const bool wanted = to >= 0 && to < schedule_.shape.stages &&
                        (action.kind == ActionKind::Forward || taken(action, to));
    if (action.kind != ActionKind::Update) {
      const Pass made = pass(action);
      made_.insert(made);
      if (!wanted || worker_of(to, action.replica) == w) {
        there_.insert(made);
      } else {
        int& waiting = waiting_[{action.stage, to, action.replica}];
        const int capacity = schedule_.shape.link_capacity;
        if (capacity > 0 && waiting >= capacity) return;
        ++waiting;
        const StageCost& cost = costs_[as_size(action.stage)];
        queues_[w].push_back({made, w, worker_of(to, action.replica),
                              is_backward(action) ? cost.input_bytes : cost.output_bytes});
        const std::size_t receiver = worker_of(to, action.replica);
        if (hardware_.receives == Receives::ProgramOrder) {
          on_their_way_[receiver].push_back(queues_[w].back());
          queues_[w].clear();
          serve(receiver);
        }
        if (hardware_.taken_as_sent()) {
          in_order_[{w, receiver}].push_back(made);
          at(now_, [this, receiver] { start(receiver); });
        }
        if (hardware_.sending_blocks)
          workers_[w].doing = Doing::Waits;
        else
          go_on(w);
        return dispatch(w);
      }
    }
    go_on(w);
  }

  bool taken(const Action& gradient, int stage) const {
    for (const Action& action : schedule_.workers[worker_of(stage, gradient.replica)])
      if (is_backward(action) && action.stage == stage && action.loss == gradient.loss) return true;
    return false;
  }

  void go_on(std::size_t w) {
    workers_[w].doing = Doing::Nothing;
    ++workers_[w].next;
    start(w);
  }

  /// With a rendezvous, when nothing else happens at this moment: lets the message begin that can,
  /// of several that of the first sender and receiver. False if none can.
  bool meet() {
    if (hardware_.receives != Receives::Rendezvous) return false;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      auto& queue = queues_[w];
      auto best = queue.end();
      std::set<std::size_t> passed;
      for (auto message = queue.begin(); message != queue.end(); ++message) {
        const bool ordered = hardware_.copy_engines > 0;
        const bool engine = !ordered || copies_[w] < hardware_.copy_engines;
        if (engine && receives_.contains(message->output) && !busy_.contains({w, message->to}) &&
            !passed.contains(message->to) && (best == queue.end() || message->to < best->to))
          best = message;
        passed.insert(message->to);
        if (ordered) break;
      }
      if (best == queue.end()) continue;
      const Message chosen = *best;
      queue.erase(best);
      carry(chosen);
      return true;
    }
    return false;
  }

  /// Starts the messages that can be sent now: one per link, as many as there are copy engines, in
  /// order.
  void dispatch(std::size_t w) {
    if (hardware_.receives == Receives::Rendezvous) return;
    auto& queue = queues_[w];
    for (bool begun = true; begun;) {
      begun = false;
      std::set<std::size_t> passed;
      for (auto message = queue.begin(); message != queue.end(); ++message) {
        const bool ordered = hardware_.copy_engines > 0;
        const bool engine = !ordered || copies_[w] < hardware_.copy_engines;
        if (engine && !busy_.contains({w, message->to}) && !passed.contains(message->to)) {
          const Message chosen = *message;
          queue.erase(message);
          carry(chosen);
          begun = true;
          break;
        }
        passed.insert(message->to);
        if (ordered) break;
      }
    }
  }

  /// Lets the message that the worker's program takes next begin to cross the one wire into the
  /// worker, if it has been sent and the wire is free.
  void serve(std::size_t w) {
    if (serving_.contains(w)) return;
    std::size_t& asked = asked_[w];
    const auto& actions = schedule_.workers[w];
    while (asked < actions.size() && !comes_by_link(actions[asked])) ++asked;
    if (asked == actions.size()) return;
    const Pass needed = input(schedule_, actions[asked]);
    auto& sent = on_their_way_[w];
    const auto message = std::ranges::find(sent, needed, &Message::output);
    if (message == sent.end()) return;
    ++asked;
    serving_.insert(w);
    const LinkSpeed speed =
        hardware_.speed_of(static_cast<int>(message->from), static_cast<int>(w));
    const double crossed = now_ + static_cast<double>(message->bytes) / speed.bandwidth;
    sent.erase(message);
    at(crossed + (speed.latency_occupies ? speed.latency : 0), [this, w] {
      serving_.erase(w);
      serve(w);
    });
    at(crossed + speed.latency, [this, w, needed] {
      there_.insert(needed);
      start(w);
    });
  }

  void carry(const Message& message) {
    const int from = static_cast<int>(message.from), to = static_cast<int>(message.to);
    const LinkSpeed speed = hardware_.speed_of(from, to);
    const auto size = static_cast<double>(message.bytes);
    double sent = now_ + size / speed.bandwidth;
    for (const Bus& bus : hardware_.buses) {
      if (!bus.carries(from, to)) continue;
      double& free = bus_free_[&bus];
      free = std::max(free, now_) + size / bus.bandwidth;
      sent = std::max(sent, free);
    }
    busy_.insert({message.from, message.to});
    ++copies_[message.from];
    at(sent, [this, message] {
      --copies_[message.from];
      if (hardware_.sending_blocks) go_on(message.from);
      dispatch(message.from);
    });
    at(sent + (speed.latency_occupies ? speed.latency : 0), [this, message] {
      busy_.erase({message.from, message.to});
      dispatch(message.from);
    });
    at(sent + speed.latency, [this, message] {
      there_.insert(message.output);
      start(message.to);
    });
  }

  double coding(std::size_t w) const {
    return costs_[as_size(current(w)->stage)].coding_reduce *
           hardware_.time_factor(static_cast<int>(w));
  }

  /// Encodes the gradients of a reduction, after which the worker waits for the other replicas.
  void encode(std::size_t w, const Action& action) {
    workers_[w].doing = Doing::Computes;
    at(now_ + coding(w), [this, w, &action] {
      workers_[w].doing = Doing::Meets;
      reduce(action);
    });
  }

  void reduce(const Action& action) {
    std::vector<std::size_t> replicas;
    for (int r = 0; r < schedule_.shape.replicas; ++r) {
      replicas.push_back(worker_of(action.stage, r));
      const Action* other = current(replicas.back());
      if (other == nullptr || workers_[replicas.back()].doing != Doing::Meets ||
          other->kind != ActionKind::Reduce || other->stage != action.stage)
        return;
    }
    double latency = 0, slowest = 0;
    const auto count = static_cast<double>(replicas.size());
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      const LinkSpeed speed = hardware_.speed_of(
          static_cast<int>(replicas[r]), static_cast<int>(replicas[(r + 1) % replicas.size()]));
      latency = std::max(latency, speed.latency);
      slowest = std::max(slowest, 1 / speed.bandwidth);
    }
    std::map<const Bus*, int> crossings;
    for (const Bus& bus : hardware_.buses) {
      int crossing = 0;
      for (std::size_t r = 0; r < replicas.size(); ++r)
        crossing += bus.carries(static_cast<int>(replicas[r]),
                                static_cast<int>(replicas[(r + 1) % replicas.size()]));
      slowest = std::max(slowest, crossing / bus.bandwidth);
      if (crossing > 0) crossings[&bus] = crossing;
    }
    const StageCost& cost = costs_[as_size(action.stage)];
    std::vector<std::int64_t> sums{cost.parameter_bytes};
    if (cost.reduced_bytes) sums.assign(cost.reduced_bytes->begin(), cost.reduced_bytes->end());
    double end = now_;
    for (const std::int64_t bytes : sums) {
      const double share = 2 * (count - 1) * static_cast<double>(bytes) / count;
      for (const auto& [bus, crossing] : crossings) end = std::max(end, bus_reduced_[bus]);
      for (const auto& [bus, crossing] : crossings)
        bus_reduced_[bus] = end + share * crossing / bus->bandwidth;
      end += share * slowest + 2 * (count - 1) * latency;
    }
    const double seconds = end - now_;
    for (const std::size_t w : replicas) {
      spans_[w][workers_[w].next] = {now_ - coding(w), now_ + seconds};
      workers_[w].doing = Doing::Waits;
      at(now_ + seconds, [this, w] { go_on(w); });
    }
  }

  const Schedule& schedule_;
  const std::vector<StageCost>& costs_;
  const Hardware& hardware_;
  std::vector<Worker> workers_;
  std::vector<std::vector<Span>> spans_;
  std::multimap<double, std::function<void()>> events_;
  double now_ = 0;
  std::set<Pass> made_, there_;                 // at its own stage; at the stage that receives it
  std::map<std::pair<int, int>, int> updates_;  // by stage and replica
  std::set<std::tuple<int, int, int, int, int>> predicted_;
  std::map<Edge, int> waiting_;
  std::map<std::size_t, std::deque<Message>> queues_;
  std::set<std::pair<std::size_t, std::size_t>> busy_;  // links
  std::map<std::size_t, int> copies_;
  std::map<const Bus*, double> bus_free_, bus_reduced_;
  /// By worker and direction: host copies that have not begun, with their position.
  std::map<std::pair<std::size_t, bool>, std::deque<std::pair<std::size_t, const Action*>>>
      copies_to_do_;
  std::set<std::pair<std::size_t, bool>> copying_;
  std::set<Pass> on_host_, gone_;  // by forward: not all back on the device; all on the host
  /// Messages of a link that were sent and not yet taken, in order.
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Pass>> in_order_;
  /// With Receives::ProgramOrder, by receiver: messages that have not begun to cross its wire, the
  /// action whose input crosses next, and whether the wire is busy.
  std::map<std::size_t, std::deque<Message>> on_their_way_;
  std::map<std::size_t, std::size_t> asked_;
  std::set<std::size_t> serving_;
  std::set<Pass> receives_;  // whose receiver has come to their receive
};

}  // namespace pipewright::naive
