// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <deque>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/runtime/devices/parcel.h"
#include "core/runtime/message_places.h"
#include "core/runtime/reduction.h"
#include "core/runtime/stage_numbers.h"
#include "core/runtime/transport.h"

namespace pipewright {
namespace {

/// Messages in shared memory; a waiting worker sleeps on a condition variable of its own.
class QueueTransport final : public Transport {
  using TimePoint = std::chrono::steady_clock::time_point;

 public:
  QueueTransport(const Program& program, std::vector<at::Device> devices,
                 const std::atomic<bool>* stop, std::chrono::milliseconds timeout,
                 TimePoint (*now)())
      : program_(program),
        devices_(std::move(devices)),
        stop_(stop),
        timeout_(timeout),
        now_(now),
        places_(program),
        messages_(places_.count()),
        ready_(places_.count()),
        workers_(program.workers.size()),
        on_link_(program.links.size()),
        numbers_(program.schedule.shape),
        awake_(static_cast<int>(program.workers.size())) {
    for (int stage = 0; stage < program.schedule.shape.stages; ++stage)
      reductions_.emplace_back(program.schedule.shape.replicas);
  }

  void send(const Port& port, Envelope message) override {
    const Link& link = program_.links[as_size(port.link)];
    OnLink& state = on_link_[as_size(port.link)];
    const std::size_t slot = places_.index(port);
    const auto room = [&] {
      return !ready_[slot] && (link.capacity == 0 || state.waiting < link.capacity);
    };
    if (!room()) {
      state.full = true;
      wait(link.from, room);
      state.full = false;
    }
    ++state.waiting;
    const EnvelopeContents contents = contents_of(message);
    messages_[slot] = {depart(flat(std::move(message)), devices_[as_size(port.to)]), contents};
    ready_[slot].store(true, std::memory_order_release);
    wake(port.to);
  }

  Envelope receive(const Port& port, int worker, Enclosed) override {
    const std::size_t slot = places_.index(port);
    auto& ready = ready_[slot];
    wait(worker, [&] { return ready.load(std::memory_order_acquire); });
    OnItsWay message = std::exchange(messages_[slot], {});
    OnLink& state = on_link_[as_size(port.link)];
    --state.waiting;
    ready = false;
    if (state.full) wake(program_.links[as_size(port.link)].from);
    return envelope_of(arrive(std::move(message.parcel)), message.contents);
  }

  SummedBytes reduce(const Instruction& instruction, Stage& stage, GradientExchange* exchange,
                     int worker) override {
    SummedBytes bytes{.values = bytes_of(stage.gradients())};
    advance(exchange, 0, stage.gradients());
    for (int round = 1; round <= rounds_of(exchange); ++round) {
      bytes.sent += bytes_of(stage.gradients());
      sum(instruction.action, stage, worker);
      advance(exchange, round, stage.gradients());
    }
    return bytes;
  }

  void give_number(const Action& update, double number) override {
    {
      const Lock lock(numbers_mutex_);
      numbers_.give(update, number);
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) wake(static_cast<int>(w));
  }
  double sum_of_numbers(const Action& update, int worker) override {
    wait(worker, [&] {
      const Lock lock(numbers_mutex_);
      return numbers_.complete(update);
    });
    const Lock lock(numbers_mutex_);
    return numbers_.take(update);
  }

  void worker_finished() override { --awake_; }

  void abort() override {
    aborted_ = true;
    for (std::size_t w = 0; w < workers_.size(); ++w) wake(static_cast<int>(w));
  }

 private:
  struct OnItsWay {
    Parcel parcel;
    EnvelopeContents contents;
  };

  struct Worker {
    Mutex mutex;
    Condition woken;
  };

  /// A sender without room says so before it looks again, and a receiver makes room before it looks
  /// whether somebody said so: one of them sees the other.
  struct OnLink {
    std::atomic<int> waiting = 0;    ///< messages sent and not received
    std::atomic<bool> full = false;  ///< the sender waits for room
  };

  struct Asleep {
    explicit Asleep(std::atomic<int>& awake) : awake_(awake) { --awake_; }
    ~Asleep() { ++awake_; }
    std::atomic<int>& awake_;
  };

  /// Throws once all workers have slept, and no message has moved, for the deadlock timeout.
  class DeadlockTimer {
   public:
    explicit DeadlockTimer(const QueueTransport& all) : all_(all), since_(all.now_()) {}
    void check() {
      const TimePoint now = all_.now_();
      if (all_.awake_ > 0 || all_.wakes_ != wakes_) {
        wakes_ = all_.wakes_;
        since_ = now;
      } else if (now - since_ > all_.timeout_) {
        const std::chrono::duration<double> seconds = all_.timeout_;
        throw Error(
            ErrorKind::Worker,
            concat("deadlock: every worker waits for a message of another, and none has come for ",
                   seconds.count(),
                   " s (pipeline.timeout, at most 8 with threads); an action waits for one "
                   "that comes later: see the order that `pipewright schedule` draws"));
      }
    }

   private:
    const QueueTransport& all_;
    std::int64_t wakes_ = -1;
    TimePoint since_;
  };

  /// Performs one round of a reduction.
  void sum(const Action& action, Stage& stage, int worker) {
    Reduction& reduction = reductions_[as_size(action.stage)];
    const int round = reduction.rounds();
    if (reduction.contribute(action.replica, stage.gradients(), stage.device()))
      for (const int other : program_.schedule.shape.workers_of(action.stage)) wake(other);
    else
      wait(worker, [&] { return reduction.rounds() > round; });
    reduction.take(action.replica, stage.gradients());
  }

  template <class Condition>
  void wait(int worker, const Condition& condition) {
    if (!aborted_ && condition()) return;
    Worker& self = workers_[as_size(worker)];
    const Asleep asleep(awake_);
    Lock lock(self.mutex);
    DeadlockTimer timer(*this);
    while (!aborted_ && !condition()) {
      self.woken.wait_for(lock, std::chrono::milliseconds(100));
      if (stop_ != nullptr && *stop_) break;
      timer.check();
    }
    if (aborted_ || (stop_ != nullptr && *stop_ && !condition()))
      throw Error(ErrorKind::Interrupted, "stopped while waiting for another worker");
  }

  /// Locking the mutex ensures that a worker about to sleep does not miss the wake-up.
  void wake(int worker) {
    Worker& other = workers_[as_size(worker)];
    ++wakes_;
    { const Lock lock(other.mutex); }
    other.woken.notify_all();
  }

  const Program& program_;
  const std::vector<at::Device> devices_;  ///< device of each worker
  const std::atomic<bool>* stop_;
  const std::chrono::milliseconds timeout_;
  TimePoint (*const now_)();
  const MessagePlaces places_;
  std::vector<OnItsWay> messages_;
  std::vector<std::atomic<bool>> ready_;
  std::vector<Worker> workers_;
  std::vector<OnLink> on_link_;
  std::deque<Reduction> reductions_;  ///< one per stage; each synchronises itself
  Mutex numbers_mutex_;
  StageNumbers numbers_ PIPEWRIGHT_GUARDED_BY(numbers_mutex_);
  std::atomic<bool> aborted_ = false;
  std::atomic<int> awake_;  ///< number of workers that do not wait
  std::atomic<std::int64_t> wakes_ = 0;
};

}  // namespace

std::unique_ptr<Transport> queue_transport(const Program& program, std::vector<at::Device> devices,
                                           const std::atomic<bool>* stop,
                                           std::chrono::milliseconds timeout,
                                           std::chrono::steady_clock::time_point (*now)()) {
  return std::make_unique<QueueTransport>(program, std::move(devices), stop, timeout, now);
}

}  // namespace pipewright
