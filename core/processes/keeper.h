// SPDX-License-Identifier: Apache-2.0
/// The thread that keeps a team of processes alive: it sends heartbeats, drives messages in flight,
/// and notices when another process fails, dies or falls silent, and when all wait for each other.
/// So every wait of the working thread ends, whatever happens elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/mutex.h"
#include "core/processes/mail.h"
#include "core/processes/peers.h"
#include "core/processes/team_patience.h"
#include "core/processes/wire.h"

namespace pipewright {

/// The keeper's own thread and one working thread may call it at the same time.
class Keeper {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  struct Questions {
    std::function<std::string()> device_failure;  ///< error of a device group; "": none
    std::function<void()> after_round;            ///< called without the mutex
  };

  /// `stop` (may be null) becomes true after a signal.
  Keeper(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience);
  ~Keeper();

  /// Starts the thread. Throws Error{Worker} if the system has no thread left.
  void start(Questions questions);
  /// Sends `last` to all processes and ends the thread.
  void stop_after(const TeamNote& last);

  const TeamPatience& patience() const { return patience_; }
  TimePoint now() const { return patience_.now(); }
  void set_activity(std::function<std::string()> activity);

  /// Waits until the condition, which is called with the mutex held, is true. Throws the team's
  /// failure, and Error{Interrupted} after a signal. `allowance` is added to the deadlock timeout.
  void wait_for(const std::function<bool()>& condition, std::chrono::milliseconds allowance = {});

  Mutex& mutex() PIPEWRIGHT_RETURNS_MUTEX(mutex_) { return mutex_; }
  Wire& wire() PIPEWRIGHT_REQUIRES(mutex_) { return *wire_; }
  Mail& mail() PIPEWRIGHT_REQUIRES(mutex_) { return mail_; }
  Peers& peers() PIPEWRIGHT_REQUIRES(mutex_) { return peers_; }
  std::optional<TimePoint> signal_seen() const PIPEWRIGHT_REQUIRES(mutex_) { return signal_seen_; }

 private:
  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  void keep() PIPEWRIGHT_EXCLUDES(mutex_);
  void look_around() PIPEWRIGHT_REQUIRES(mutex_);
  std::chrono::microseconds round() const PIPEWRIGHT_REQUIRES(mutex_);
  void drive_mail() PIPEWRIGHT_REQUIRES(mutex_);
  void beat() PIPEWRIGHT_REQUIRES(mutex_);
  void look_for_deaths() PIPEWRIGHT_REQUIRES(mutex_);
  void look_for_standstill() PIPEWRIGHT_REQUIRES(mutex_);
  void look_at_devices() PIPEWRIGHT_REQUIRES(mutex_);
  std::chrono::milliseconds still() const PIPEWRIGHT_REQUIRES(mutex_);

  const TeamPatience patience_;
  const std::atomic<bool>* const stop_;
  Questions questions_;

  Mutex mutex_;
  std::unique_ptr<Wire> wire_ PIPEWRIGHT_GUARDED_BY(mutex_);
  Mail mail_ PIPEWRIGHT_GUARDED_BY(mutex_);
  Peers peers_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::optional<TimePoint> signal_seen_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::optional<TimePoint> waiting_since_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::int64_t moved_ PIPEWRIGHT_GUARDED_BY(mutex_) =
      0;  ///< value of Mail::moved() in the last round
  TimePoint last_beat_ PIPEWRIGHT_GUARDED_BY(mutex_);
  TimePoint last_round_ PIPEWRIGHT_GUARDED_BY(mutex_);
  TimePoint last_look_ PIPEWRIGHT_GUARDED_BY(mutex_);
  TimePoint moved_at_ PIPEWRIGHT_GUARDED_BY(mutex_);
  bool keeping_ PIPEWRIGHT_GUARDED_BY(mutex_) = true;
  Condition woken_;
  std::thread thread_;
};

}  // namespace pipewright
