// SPDX-License-Identifier: Apache-2.0
// Every action starts when its worker is free and its input is there, so times follow from one walk
// in any order that respects these; no queue of events is needed. Only on buses, which several
// senders or reductions share, and of messages that wait for their receives, the order matters:
// these wait until no worker can go on, and then the earliest is delivered.
#include "core/simulation/simulate_clock.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "core/base/error.h"
#include "core/schedule/deadlock.h"
#include "core/simulation/action_seconds.h"
#include "core/simulation/host_copies.h"
#include "core/simulation/lent_messages.h"

namespace pipewright {
namespace {

constexpr double kNotYet = -1;

/// Throws Error{Schedule}, which names the hardware and explains why no worker can go on.
[[noreturn]] void refuse_stop(const Schedule& schedule, const PassIndex& index,
                              const Hardware& hardware, const std::vector<Wait>& waits) {
  const Deadlock deadlock = explain_deadlock(schedule, index, waits);
  std::string why;
  if (hardware.taken_as_sent())
    why = concat(", where copies.receives is ",
                 hardware.receives == Receives::InOrder ? "in_order" : "rendezvous",
                 hardware.sending_blocks ? " and copies.block_compute true" : "");
  throw Error(ErrorKind::Schedule,
              concat("the schedule stops on the hardware '", hardware.name, "'", why, ": ",
                     deadlock.message),
              concat("worker ", deadlock.root.first, ", action ", deadlock.root.second));
}

/// The way of the messages of a (stage, replica) in one direction.
struct Edge {
  int to = -1;    ///< the receiving worker; −1: there is no such stage
  int link = -1;  ///< −1: sender and receiver are the same worker
  std::int64_t bytes = 0;
  std::size_t sent = 0, taken = 0;
  std::size_t takes = 0;  ///< in Clock::takes_: when its last `link_capacity` messages were taken
};

struct Worker {
  /// Performs its next action, or waits for room on a link, for the end of a transfer, or for the
  /// other replicas of a reduction.
  enum class Doing : std::uint8_t { Next, WaitsForRoom, WaitsForTransfer, Meets };
  std::size_t next = 0;
  double free = 0;
  Doing doing = Doing::Next;
  /// When the input of the forward of a fused pair has come, whose other input has not.
  double first_arrival = kNotYet;
  bool performed = false;  ///< its next action was, in a fused pair with the one before it
  bool queued = false;
  bool receives = false;  ///< has posted the receive of its next action
};

/// A reduction of one stage, at which its replicas arrive one by one.
struct Meeting {
  std::vector<int> workers;  ///< the workers of all replicas
  std::vector<int> here;     ///< those that have arrived
  double last = 0;
};

class Clock {
 public:
  Clock(const ProvedSchedule& proved, std::span<const StageCost> costs, const Hardware& hardware,
        Simulation& simulation, bool transfers)
      : schedule_(proved.schedule),
        index_(proved.index),
        shape_(schedule_.shape),
        slots_(proved.index.slots()),
        costs_(costs),
        seconds_(proved, costs, hardware),
        hardware_(hardware),
        network_(hardware, transfers),
        host_(proved, costs, hardware),
        result_(simulation),
        workers_(schedule_.workers.size()),
        edges_(2 * as_size(shape_.stages) * as_size(shape_.replicas)),
        meetings_(shape_.replicas > 1 ? as_size(shape_.stages) : 0) {
    times_.forward_arrivals.assign(slots_.forwards(), kNotYet);
    times_.backward_arrivals.assign(slots_.backwards(), kNotYet);
    for (const auto& worker : schedule_.workers) times_.spans.emplace_back(worker.size());
    result_.workers.resize(schedule_.workers.size());
    result_.minibatch_ends.assign(as_size(shape_.minibatches), 0);
    lay_edges();
    if (shares_weights(shape_)) lent_.emplace(proved, hardware, network_);
  }

  ClockTimes run() {
    for (std::size_t w = workers_.size(); w-- > 0;) wake(static_cast<int>(w));
    do {
      while (!awake_.empty()) {
        const int w = awake_.back();
        awake_.pop_back();
        workers_[as_size(w)].queued = false;
        advance(w);
      }
    } while (deliver_posted());
    check_finished();
    report();
    return std::move(times_);
  }

 private:
  void lay_edges() {
    for (int replica = 0; replica < shape_.replicas; ++replica)
      for (int stage = 0; stage < shape_.stages; ++stage) {
        if (stage + 1 < shape_.stages)
          lay(edge(stage, replica, false), stage, stage + 1, replica,
              costs_[as_size(stage)].sent_bytes.value_or(costs_[as_size(stage)].output_bytes));
        if (stage > 0)
          lay(edge(stage, replica, true), stage, stage - 1, replica,
              costs_[as_size(stage)].sent_gradient_bytes.value_or(
                  costs_[as_size(stage)].input_bytes));
      }
    if (shape_.replicas > 1)
      for (int stage = 0; stage < shape_.stages; ++stage)
        for (int replica = 0; replica < shape_.replicas; ++replica)
          meetings_[as_size(stage)].workers.push_back(shape_.worker_of(stage, replica));
  }

  void lay(Edge& edge, int stage, int to, int replica, std::int64_t bytes) {
    const int from = shape_.worker_of(stage, replica);
    edge.to = shape_.worker_of(to, replica);
    edge.bytes = bytes;
    if (edge.to == from) return;
    edge.link = network_.link(from, edge.to);
    sent_.resize(network_.links().size());
    edge.takes = takes_.size();
    takes_.resize(takes_.size() + as_size(shape_.link_capacity), 0);
  }

  Edge& edge(int stage, int replica, bool gradient) {
    return edges_[(as_size(replica) * as_size(shape_.stages) + as_size(stage)) * 2 +
                  (gradient ? 1 : 0)];
  }

  void wake(int w) {
    Worker& worker = workers_[as_size(w)];
    if (worker.queued) return;
    worker.queued = true;
    awake_.push_back(w);
  }

  const Action& current(int w) const {
    return schedule_.workers[as_size(w)][workers_[as_size(w)].next];
  }

  /// Lets a worker go on until it has to wait.
  void advance(int w) {
    Worker& self = workers_[as_size(w)];
    if (self.doing == Worker::Doing::WaitsForRoom && !send(w)) return;
    if (self.doing != Worker::Doing::Next) return;
    const std::size_t count = schedule_.workers[as_size(w)].size();
    while (self.next < count) {
      const Action& action = current(w);
      if (goes_on_beside(action.kind)) {
        times_.spans[as_size(w)][self.next++] =
            host_.copy(w, action, self.free, result_.workers[as_size(w)].host);
        continue;
      }
      if (action.kind == ActionKind::Reduce) {
        if (!arrive_at_reduction(w, action)) return;
        continue;
      }
      const bool performed = std::exchange(self.performed, false);
      if ((!performed && !perform(w, action)) || !send(w)) return;
    }
  }

  /// Performs an action, and the next one if both are a fused pair, which begin and end together.
  /// False if an input has not arrived.
  bool perform(int w, const Action& action) {
    Worker& self = workers_[as_size(w)];
    const auto& actions = schedule_.workers[as_size(w)];
    const bool pair = is_fused_pair(actions, self.next);
    const double input =
        self.first_arrival != kNotYet ? self.first_arrival : received(w, action, self.free);
    if (input < 0) return false;
    double begin = std::max(self.free, input);
    if (pair) {
      self.first_arrival = input;
      const double beside = received(w, actions[self.next + 1], begin);
      if (beside < 0) return false;
      begin = std::max(begin, beside);
      self.first_arrival = kNotYet;
    }
    const double ready = begin;
    begin = std::max(begin, host_.fetched(pair ? actions[self.next + 1] : action));
    result_.workers[as_size(w)].host.waiting += begin - ready;
    take_input(action, begin);
    if (pair) take_input(actions[self.next + 1], begin);
    if (lent_ && action.kind == ActionKind::Forward) lent_->send(action, begin);
    const double seconds = pair ? seconds_.of_pair(w, self.next) : seconds_.of_action(w, self.next);
    self.performed = pair;
    self.free = begin + seconds;
    for (std::size_t i = self.next; i <= self.next + (pair ? 1 : 0); ++i) {
      times_.spans[as_size(w)][i] = {begin, self.free};
      double& end = result_.minibatch_ends[as_size(actions[i].minibatch)];
      end = std::max(end, self.free);
    }
    result_.workers[as_size(w)].computing += seconds;
    return true;
  }

  /// When the action's input arrives, if its worker comes to receive it at that time; 0 if it needs
  /// none, kNotYet if that is not known.
  double received(int w, const Action& action, double time) {
    const InputSource input = input_source(action);
    if (lent_ && !lent_->are_sent(action)) return kNotYet;
    if (input.stage < 0) return lent_ && !is_pass(action.kind) ? lent_->received(action) : 0;
    if (!comes_next(action, input)) return kNotYet;
    post_receive(w, action, input, time);
    double* const arrival = arrival_of(action, input);
    if (arrival == nullptr || *arrival < 0) return kNotYet;
    end_receive(w, action, input);
    const double lent = lent_ && action.kind == ActionKind::Forward ? lent_->received(action) : 0;
    const Edge& way = edge(input.stage, action.replica, input.gradient);
    if (hardware_.receives == Receives::ProgramOrder && way.link >= 0)
      *arrival = network_.carry(way.link, *arrival, way.bytes).arrived;
    return std::max(*arrival, lent);
  }

  void take_input(const Action& action, double time) {
    const InputSource input = input_source(action);
    if (input.stage >= 0 && shape_.link_capacity > 0)
      take(edge(input.stage, action.replica, input.gradient), time);
  }

  /// Whether the link of the action's input would now let its worker take it.
  bool comes_next(const Action& action, InputSource input) {
    if (!hardware_.taken_as_sent()) return true;
    const Edge& way = edge(input.stage, action.replica, input.gradient);
    if (way.link < 0) return true;
    const std::deque<std::int64_t>& sent = sent_[as_size(way.link)];
    return !sent.empty() && sent.front() == tag_of(action, input);
  }

  void post_receive(int w, const Action& action, InputSource input, double time) {
    if (!hardware_.taken_as_sent()) return;
    const Edge& way = edge(input.stage, action.replica, input.gradient);
    if (way.link < 0) return;
    const bool posted = std::exchange(workers_[as_size(w)].receives, true);
    if (network_.rendezvous() && !posted) network_.receive(way.link, time);
  }

  void end_receive(int w, const Action& action, InputSource input) {
    if (!hardware_.taken_as_sent()) return;
    const Edge& way = edge(input.stage, action.replica, input.gradient);
    workers_[as_size(w)].receives = false;
    if (way.link >= 0) sent_[as_size(way.link)].pop_front();
  }

  /// The number of a message: of its slot and its direction.
  static std::int64_t tag_of(std::size_t slot, bool gradient) {
    return static_cast<std::int64_t>(2 * slot + (gradient ? 1 : 0));
  }
  std::int64_t tag_of(const Action& action, InputSource input) const {
    return tag_of(
        input.gradient ? slots_.backward(action, input.stage) : slots_.forward(action, input.stage),
        input.gradient);
  }

  /// The arrival time of the action's input; nullptr if no action makes that input. With
  /// Receives::ProgramOrder it is the time of sending until the receiving worker comes to it.
  double* arrival_of(const Action& action, InputSource input) {
    if (!input.gradient) return &times_.forward_arrivals[slots_.forward(action, input.stage)];
    const std::size_t slot = slots_.backward(action, input.stage);
    return slot == PassSlots::kNone ? nullptr : &times_.backward_arrivals[slot];
  }

  void take(Edge& from, double time) {
    if (from.link < 0) return;
    takes_[from.takes + from.taken++ % as_size(shape_.link_capacity)] = time;
    wake(network_.links()[as_size(from.link)].from);
  }

  /// Sends what the current action has made, and makes the next action current. False if the worker
  /// waits, for room on the link or for the end of a transfer that blocks it.
  bool send(int w) {
    const Action& action = current(w);
    if (!send_output(w)) return false;
    Worker& self = workers_[as_size(w)];
    if (!lent_ || action.kind == ActionKind::Forward) return true;
    lent_->send(action, self.free);
    if (is_pass(action.kind)) self.free = std::max(self.free, lent_->received(action));
    return true;
  }

  bool send_output(int w) {
    Worker& self = workers_[as_size(w)];
    const Action& action = current(w);
    const bool gradient = is_backward(action.kind);
    Edge* way = nullptr;
    std::size_t slot = 0;
    if (action.kind == ActionKind::Forward) {
      way = &edge(action.stage, action.replica, false);
      slot = slots_.forward(action, action.stage);
    } else if (gradient && seconds_.sends_gradient(action)) {
      way = &edge(action.stage, action.replica, true);
      slot = slots_.backward(action, action.stage);
    }
    self.doing = Worker::Doing::Next;
    if (way == nullptr || way->to < 0) {
      ++self.next;
      return true;
    }
    if (way->link < 0) {
      (gradient ? times_.backward_arrivals : times_.forward_arrivals)[slot] = self.free;
      ++self.next;
      return true;
    }
    if (!make_room(*way, self)) return false;
    if (hardware_.taken_as_sent()) sent_[as_size(way->link)].push_back(tag_of(slot, gradient));
    if (network_.must_post()) {
      network_.post({way->link, self.free, way->bytes, tag_of(slot, gradient)});
      if (network_.rendezvous()) wake(way->to);
      if (hardware_.sending_blocks) {
        self.doing = Worker::Doing::WaitsForTransfer;
        return false;
      }
      ++self.next;
      return true;
    }
    if (hardware_.receives == Receives::ProgramOrder) {
      ++self.next;
      arrive(gradient, slot, way->to, self.free);
      return true;
    }
    const Delivery delivery = network_.carry(way->link, self.free, way->bytes);
    if (hardware_.sending_blocks) block(w, delivery.sent);
    ++self.next;
    arrive(gradient, slot, way->to, delivery.arrived);
    return true;
  }

  /// Waits for room on a bounded link: message n leaves when message n − capacity has been taken.
  bool make_room(Edge& way, Worker& self) {
    const std::size_t capacity = as_size(shape_.link_capacity);
    if (capacity == 0) return true;
    if (way.sent >= way.taken + capacity) {
      self.doing = Worker::Doing::WaitsForRoom;
      return false;
    }
    const double room = takes_[way.takes + way.sent % capacity];
    if (way.sent++ >= capacity) self.free = std::max(self.free, room);
    return true;
  }

  /// Keeps the device busy with a transfer until then.
  void block(int w, double until) {
    Worker& self = workers_[as_size(w)];
    result_.workers[as_size(w)].communicating += until - self.free;
    self.free = until;
  }

  void arrive(bool gradient, std::size_t slot, int to, double time) {
    (gradient ? times_.backward_arrivals : times_.forward_arrivals)[slot] = time;
    wake(to);
  }

  /// Lets the first begin of what waits for its turn: a posted message or, where buses are shared,
  /// a reduction. False if nothing waits.
  bool deliver_posted() {
    if (!reductions_.empty() && reductions_.top().first <= network_.next_time()) {
      const int stage = reductions_.top().second;
      reductions_.pop();
      reduce(stage);
      return true;
    }
    const auto next = network_.next();
    if (!next) return false;
    const auto& [message, delivery] = *next;
    if (message.tag < 0) {
      lent_->deliver(message.tag, delivery.arrived);
      wake(network_.links()[as_size(message.link)].to);
      return true;
    }
    const Network::Link& link = network_.links()[as_size(message.link)];
    if (hardware_.sending_blocks) {
      block(link.from, delivery.sent);
      workers_[as_size(link.from)].doing = Worker::Doing::Next;
      ++workers_[as_size(link.from)].next;
      wake(link.from);
    }
    arrive(message.tag % 2 == 1, static_cast<std::size_t>(message.tag / 2), link.to,
           delivery.arrived);
    return true;
  }

  /// Lets a replica arrive at a reduction. False if it does not go on at once.
  bool arrive_at_reduction(int w, const Action& action) {
    Worker& self = workers_[as_size(w)];
    if (lent_) {
      if (!lent_->are_sent(action)) return false;
      self.free = std::max(self.free, lent_->received(action));
    }
    if (meetings_.empty()) {  // one replica has nothing to reduce
      times_.spans[as_size(w)][self.next++] = {self.free, self.free};
      return true;
    }
    Meeting& meeting = meetings_[as_size(action.stage)];
    meeting.here.push_back(w);
    meeting.last = std::max(meeting.last, self.free + seconds_.of_reduction(w, action.stage));
    self.doing = Worker::Doing::Meets;
    if (meeting.here.size() < meeting.workers.size()) return false;
    if (hardware_.buses.empty())
      reduce(action.stage);
    else
      reductions_.emplace(meeting.last, action.stage);
    return false;
  }

  /// Reduces what all replicas of a stage have brought, and lets them go on.
  void reduce(int stage) {
    Meeting& meeting = meetings_[as_size(stage)];
    const double seconds = sum(meeting, costs_[as_size(stage)]);
    const double end = meeting.last + seconds;
    for (const int each : meeting.here) {
      Worker& worker = workers_[as_size(each)];
      const double coding = seconds_.of_reduction(each, stage);
      times_.spans[as_size(each)][worker.next++] = {meeting.last - coding, end};
      result_.workers[as_size(each)].computing += coding;
      result_.workers[as_size(each)].communicating += seconds;
      worker.free = end;
      worker.doing = Worker::Doing::Next;
      wake(each);
    }
    meeting.here.clear();
    meeting.last = 0;
  }

  /// Seconds that the sums of one reduction take on links, one after the other.
  double sum(const Meeting& meeting, const StageCost& cost) {
    if (!cost.reduced_bytes)
      return network_.all_reduce(meeting.workers, cost.parameter_bytes, meeting.last);
    double seconds = 0;
    for (const std::int64_t bytes : *cost.reduced_bytes)
      seconds += network_.all_reduce(meeting.workers, bytes, meeting.last + seconds);
    return seconds;
  }

  void check_finished() {
    std::vector<Wait> waits(workers_.size());
    bool stopped = false;
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (workers_[w].next < schedule_.workers[w].size()) {
        waits[w] = wait_of(static_cast<int>(w));
        stopped = true;
      }
    if (stopped) refuse_stop(schedule_, index_, hardware_, waits);
  }

  /// The reason why a worker can never go on.
  Wait wait_of(int w) {
    const Worker& self = workers_[as_size(w)];
    const bool beside = self.first_arrival != kNotYet;
    const Action& action = beside ? schedule_.workers[as_size(w)][self.next + 1] : current(w);
    Wait wait{.action = {w, static_cast<int>(self.next)}};
    wait.beside = beside;
    if (self.doing == Worker::Doing::WaitsForRoom ||
        self.doing == Worker::Doing::WaitsForTransfer) {
      wait.what = self.doing == Worker::Doing::WaitsForRoom ? Wait::For::Room : Wait::For::Receive;
      wait.worker = edge(action.stage, action.replica, is_backward(action.kind)).to;
      return wait;
    }
    if (self.doing == Worker::Doing::Meets) {
      const Meeting& meeting = meetings_[as_size(action.stage)];
      wait.what = Wait::For::Reduction;
      wait.worker = *std::ranges::find_if(meeting.workers, [&](int each) {
        return std::ranges::find(meeting.here, each) == meeting.here.end();
      });
      return wait;
    }
    wait.what = Wait::For::Input;
    wait.input = index_.input_of(action);
    wait.worker = wait.input.first;
    const InputSource input = input_source(action);
    if (input.stage < 0) return wait;
    const int link = edge(input.stage, action.replica, input.gradient).link;
    if (link < 0 || sent_[as_size(link)].empty()) return wait;
    if (const std::int64_t first = sent_[as_size(link)].front(); first != tag_of(action, input)) {
      wait.what = Wait::For::Turn;
      wait.input = {w, static_cast<int>(taker_of(w, first))};
      wait.worker = -1;
    } else {
      wait.what = Wait::For::Engine;
      wait.worker = network_.links()[as_size(network_.blocking_link(link))].to;
    }
    return wait;
  }

  /// The position of the action that takes a message to this worker.
  std::size_t taker_of(int w, std::int64_t tag) const {
    const std::vector<Action>& actions = schedule_.workers[as_size(w)];
    std::size_t at = workers_[as_size(w)].next;
    while (++at < actions.size())
      if (const InputSource input = input_source(actions[at]);
          input.stage >= 0 && input.gradient == (tag % 2 == 1) && tag_of(actions[at], input) == tag)
        break;
    PIPEWRIGHT_CHECK(at < actions.size(), "a message that was sent has a receiver");
    return at;
  }

  void report() {
    for (const Worker& worker : workers_)
      result_.makespan = std::max(result_.makespan, worker.free);
    double idle = 0;
    for (WorkerReport& worker : result_.workers) {
      worker.idle = std::max(0.0, result_.makespan - worker.computing - worker.communicating);
      idle += worker.idle;
    }
    const double all = result_.makespan * static_cast<double>(workers_.size());
    result_.bubble = all > 0 ? idle / all : 0;
    for (const Network::Link& link : network_.links())
      if (link.traffic.messages > 0)
        result_.links.push_back({link.from, link.to, link.traffic, link.transfers});
    std::ranges::sort(result_.links, {},
                      [](const LinkReport& link) { return std::pair(link.from, link.to); });
    result_.buses = network_.buses();
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  const PipelineShape& shape_;
  const PassSlots& slots_;
  const std::span<const StageCost> costs_;
  const ActionSeconds seconds_;
  const Hardware& hardware_;
  Network network_;
  HostLinks host_;
  Simulation& result_;
  ClockTimes times_;
  std::vector<Worker> workers_;
  std::vector<Edge> edges_;  ///< [replica][stage][forwards, backwards]
  std::vector<double> takes_;
  std::vector<Meeting> meetings_;  ///< per stage
  /// On buses: reductions at which all replicas are, by the time of the last one, and their stages.
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
      reductions_;
  /// If stages share weights; laid behind the edges, whose links come first.
  std::optional<LentMessages> lent_;
  std::vector<int> awake_;
  /// [link] → tags of messages sent and not taken, where they must be taken in order.
  std::vector<std::deque<std::int64_t>> sent_;
};

}  // namespace

InputSource input_source(const Action& action) {
  const ActionInput input = facts_of(action.kind).input;
  if (input == ActionInput::ForwardBefore) return {action.stage - 1, false};
  if (input == ActionInput::GradientBehind && action.loss != action.stage)
    return {action.stage + 1, true};
  return {};
}

ClockTimes run_clock(const ProvedSchedule& proved, std::span<const StageCost> costs,
                     const Hardware& hardware, Simulation& simulation, bool transfers) {
  return Clock(proved, costs, hardware, simulation, transfers).run();
}

}  // namespace pipewright
