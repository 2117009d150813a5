// SPDX-License-Identifier: Apache-2.0
#include "core/processes/farewell.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

using namespace std::chrono_literals;

/// Longest time that the speaker waits for the others to finish writing, and they wait for the end.
constexpr std::chrono::milliseconds kFarewell = 1s, kOthersWait = 4s;

}  // namespace

Error Farewell::agree_on(const Error& error) {
  const auto until = keeper_.now() + keeper_.patience().last_look;
  const Lock lock(keeper_.mutex());
  Peers& peers = keeper_.peers();
  if (peers.failure()) return peers.failure()->error;
  const auto end_with = [&](const Error& what) { peers.try_to([&] { peers.fail(what); }); };
  if (error.kind() != ErrorKind::Interrupted) {
    const bool worker = error.kind() == ErrorKind::Worker;
    const Error own = worker && error.where().empty()
                          ? Error(error.kind(), error.message(), peers.where())
                          : error;
    // A transfer between devices also fails because the process at its other end has died.
    end_with(worker ? peers.death().value_or(own) : own);
    return peers.failure()->error;
  }
  // When a process dies, MPI sends SIGTERM to the others, so look for one that has died.
  for (; !peers.failure() && keeper_.now() < until; std::this_thread::sleep_for(5ms)) {
    peers.try_to([&] { peers.listen(); });
    if (const auto died = peers.death(); died && !peers.failure()) end_with(*died);
  }
  if (!peers.failure()) end_with(error);
  return peers.failure()->error;
}

bool Farewell::reports_to_user() {
  {
    const Lock lock(keeper_.mutex());
    const Peers& peers = keeper_.peers();
    if (!peers.failure() || peers.failure()->speaker != peers.rank()) return false;
  }
  Reporter nobody = Reporter::Nobody;
  return reporter_.compare_exchange_strong(nobody, Reporter::Work) || nobody == Reporter::Work;
}

void Farewell::set_emergency(std::function<void(const Error&, bool speaks)> report) {
  const Lock lock(emergency_mutex_);
  emergency_ = std::move(report);
}

void Farewell::end_if_stuck() {
  if (leaving_) return;
  std::optional<Peers::Failure> failure;
  bool speaker = false;
  {
    const Lock lock(keeper_.mutex());
    Peers& peers = keeper_.peers();
    const TeamPatience& patience = keeper_.patience();
    const auto time = keeper_.now();
    const auto signal = keeper_.signal_seen();
    if (signal && !peers.failure() && time - *signal > patience.after_signal)
      peers.try_to([&] {
        peers.fail(peers.death().value_or(Error(ErrorKind::Interrupted, "stopped by a signal")));
      });
    if (!peers.failure()) return;
    const auto time_to_react = signal ? patience.after_signal : patience.reaction;
    if (time - std::min(peers.failure()->since, signal.value_or(time)) < time_to_react) return;
    failure = peers.failure();
    speaker = failure->speaker == peers.rank();
  }
  try {
    const Lock lock(emergency_mutex_);
    Reporter nobody = Reporter::Nobody;
    const bool speaks = speaker && reporter_.compare_exchange_strong(nobody, Reporter::Keeper);
    if (emergency_) emergency_(failure->error, speaks);
  } catch (const std::exception&) {
    // A report that cannot be written must not keep the process from ending.
  }
  end_all(static_cast<int>(failure->error.kind()));
}

void Farewell::end_all(int exit_code) {
  const auto say_farewell = [](Peers& peers) {
    peers.try_to([&] { peers.tell_all(FarewellNote{}); });
  };
  int speaker = 0;
  bool own = false;
  {
    const Lock lock(keeper_.mutex());
    Peers& peers = keeper_.peers();
    speaker = peers.failure() ? peers.failure()->speaker : peers.rank();
    own = speaker == peers.rank();
    if (!leaving_.exchange(true) && !own) say_farewell(peers);
  }
  const auto listen_until = [&](Keeper::Clock::duration at_most, const auto& condition) {
    const auto end = keeper_.now() + at_most;
    for (bool over = false; !over && keeper_.now() < end; std::this_thread::sleep_for(10ms)) {
      const Lock lock(keeper_.mutex());
      Peers& peers = keeper_.peers();
      peers.try_to([&] { peers.listen(); });
      over = condition(peers);
    }
  };
  if (!own) {
    listen_until(kOthersWait, [&](const Peers& peers) { return peers.left(speaker); });
    ::_exit(exit_code);
  }
  listen_until(kFarewell, [](const Peers& peers) { return peers.others_left(); });
  const Lock lock(keeper_.mutex());
  say_farewell(keeper_.peers());
  keeper_.wire().abort(exit_code);
  ::_exit(exit_code);
}

}  // namespace pipewright
