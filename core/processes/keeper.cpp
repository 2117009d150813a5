// SPDX-License-Identifier: Apache-2.0
#include "core/processes/keeper.h"

#include <sched.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/system/foreign_error.h"

namespace pipewright {
namespace {

using namespace std::chrono_literals;

/// Time between the keeper's rounds: while pieces wait for a full window, while messages are in
/// flight, and otherwise.
constexpr std::chrono::microseconds kBacklogRound = 500us, kBusyRound = 2ms, kIdleRound = 20ms;
/// A gap between two rounds from which the keeper concludes that its own process was stopped.
constexpr auto kOwnGap = 1s;

/// Spins, then yields, then sleeps: most messages arrive soon, and others may need the core.
class LongerPauses {
 public:
  void pause() {
    if (++rounds_ < 200) return;
    if (rounds_ < 2000)
      ::sched_yield();
    else
      std::this_thread::sleep_for(50us);
  }

 private:
  int rounds_ = 0;
};

}  // namespace

Keeper::Keeper(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience)
    : patience_(patience),
      stop_(stop),
      wire_(std::move(wire)),
      mail_(*wire_, patience_.now),
      peers_(*wire_, patience_),
      last_round_(now()),
      moved_at_(last_round_) {}

Keeper::~Keeper() {
  {
    const Lock lock(mutex_);
    keeping_ = false;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Keeper::start(Questions questions) {
  questions_ = std::move(questions);
  try {
    thread_ = std::thread([this] { keep(); });
  } catch (const std::exception& error) {
    throw thread_error("the messages of this process", error, ErrorKind::Worker);
  }
}

void Keeper::stop_after(const TeamNote& last) {
  {
    const Lock lock(mutex_);
    peers_.tell_all(last);
    keeping_ = false;
  }
  woken_.notify_all();
  thread_.join();
}

void Keeper::set_activity(std::function<std::string()> activity) {
  {
    const Lock lock(mutex_);
    // The first action is sent at once, so that a death from now on is reported with an action.
    if (!peers_.has_activity()) last_beat_ -= patience_.heartbeat;
    peers_.set_activity(std::move(activity));
  }
  woken_.notify_all();
}

void Keeper::wait_for(const std::function<bool()>& condition, std::chrono::milliseconds allowance) {
  for (LongerPauses pauses;; pauses.pause()) {
    {
      const Lock lock(mutex_);
      mail_.advance_sends();
      const bool over = condition();
      if (over || peers_.failure()) waiting_since_.reset();
      if (over) return;
      if (peers_.failure()) throw peers_.failure()->error;
      if (!waiting_since_) waiting_since_ = now() + allowance;
    }
    if (stopped()) throw Error(ErrorKind::Interrupted, "stopped while waiting for another worker");
  }
}

// ---- rounds ----------------------------------------------------------------------------------

void Keeper::keep() {
  Lock lock(mutex_);
  while (keeping_) {
    peers_.try_to([this]() PIPEWRIGHT_REQUIRES(mutex_) { look_around(); });
    lock.unlock();
    questions_.after_round();
    lock.lock();
    if (keeping_) woken_.wait_for(lock, round());
  }
}

void Keeper::look_around() {
  const TimePoint time = now();
  if (time - last_round_ > kOwnGap) {  // this process was stopped, not the others
    peers_.forgive(time - last_round_);
    moved_at_ = time;
  }
  last_round_ = time;
  peers_.listen();
  drive_mail();
  beat();
  if (stopped() && !signal_seen_) signal_seen_ = time;
  if (!peers_.failure()) look_for_deaths();
  if (!peers_.failure())
    // Measured at the round's start: being stopped since then would look like silence of others.
    if (const auto silent = peers_.silence(last_round_)) peers_.fail(*silent);
  if (!peers_.failure()) look_for_standstill();
  if (!peers_.failure()) look_at_devices();
}

std::chrono::microseconds Keeper::round() const {
  if (mail_.has_backlog()) return kBacklogRound;
  return mail_.sending() ? kBusyRound : kIdleRound;
}

/// Makes messages progress, and notes whether a piece has moved.
void Keeper::drive_mail() {
  mail_.advance_sends();
  mail_.advance_receives();
  if (mail_.moved() != moved_) moved_at_ = last_round_;
  moved_ = mail_.moved();
  peers_.note_progress(mail_, last_round_);
}

void Keeper::beat() {
  if (last_round_ - last_beat_ < patience_.heartbeat) return;
  last_beat_ = last_round_;
  peers_.beat(still());
}

void Keeper::look_for_deaths() {
  if (last_round_ - last_look_ < patience_.death) return;
  last_look_ = last_round_;
  if (!peers_.death()) return;
  peers_.listen();  // its last note may explain its end
  if (const auto died = peers_.death(); died && !peers_.failure()) peers_.fail(*died);
}

/// Fails the team after the deadlock timeout: all processes wait for each other.
void Keeper::look_for_standstill() {
  if (still() < patience_.standstill || !peers_.others_stand_still()) return;
  const std::chrono::duration<double> seconds = patience_.standstill;
  peers_.fail(Error(
      ErrorKind::Worker,
      concat("deadlock: every worker waits for a message of another, and none has moved for ",
             seconds.count(),
             " s (pipeline.timeout); raise it if a message may take longer, else an action waits "
             "for one that comes later: see the order that `pipewright schedule` draws"),
      peers_.where()));
}

void Keeper::look_at_devices() {
  const std::string failure = questions_.device_failure();
  if (failure.empty()) return;
  peers_.fail(peers_.death().value_or(
      Error(ErrorKind::Worker, concat("NCCL reports: ", failure), peers_.where())));
}

/// How long the working thread has waited without any piece of a message moving.
std::chrono::milliseconds Keeper::still() const {
  if (!waiting_since_) return {};
  const auto since = std::max(*waiting_since_, moved_at_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(now() - since, Clock::duration{}));
}

}  // namespace pipewright
