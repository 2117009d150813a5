// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_processes.h"

#include <ctime>

namespace pipewright {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SweepProcesses::SweepProcesses() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&watched_, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&watched_, SIGHUP);  // ignored under nohup
  std::signal(SIGCHLD, SIG_DFL);  // if it were ignored, children could not be waited for
  sigaddset(&watched_, SIGCHLD);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

SweepProcesses::~SweepProcesses() {
  children_.clear();  // kills and reaps them
  const timespec none{};
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  while (sigtimedwait(&ended, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

pid_t SweepProcesses::start(const std::vector<std::string>& arguments,
                            const std::filesystem::path& log) {
  children_.emplace_back(arguments, settings_with(log));
  return children_.back().pid();
}

pid_t SweepProcesses::start(const std::function<int()>& work, const std::filesystem::path& log) {
  children_.push_back(ChildProcess::forked(work, settings_with(log)));
  return children_.back().pid();
}

ChildSettings SweepProcesses::settings_with(const std::filesystem::path& log) const {
  return {.log = log, .own_group = true, .mask = before_, .at_our_end = SIGTERM};
}

bool SweepProcesses::reap(Event& event) {
  for (auto child = children_.begin(); child != children_.end(); ++child) {
    const auto end = child->poll();
    if (!end) continue;
    event = {.kind = Event::Kind::Ended,
             .child = child->pid(),
             .exit_code = end->code,
             .signal = end->signal};
    children_.erase(child);
    return true;
  }
  return false;
}

SweepProcesses::Event SweepProcesses::wait(std::chrono::milliseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + at_most;
  Event event;
  sigset_t stops = watched_;
  sigdelset(&stops, SIGCHLD);
  for (;;) {
    // Signals before children: a child killed by the same signal is then known to be interrupted.
    const timespec none{};
    if (const int signal = sigtimedwait(&stops, nullptr, &none); signal > 0)
      return {.kind = Event::Kind::Signal, .child = 0, .exit_code = 0, .signal = signal};
    if (reap(event)) return event;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (left.count() <= 0) return event;
    timespec time{};
    time.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000);
    time.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    // If a child has ended since reap(), its SIGCHLD is pending and ends this wait at once.
    const int signal = sigtimedwait(&watched_, nullptr, &time);
    if (signal > 0 && signal != SIGCHLD)
      return {.kind = Event::Kind::Signal, .child = 0, .exit_code = 0, .signal = signal};
  }
}

void SweepProcesses::interrupt(int times) const {
  for (const ChildProcess& child : children_) {
    if (times < 3) child.signal(SIGINT);
    if (times == 2) ::kill(-child.pid(), SIGCONT);  // a stopped process hears of no other signal
    if (times > 2) ::kill(-child.pid(), SIGKILL);
  }
}

}  // namespace pipewright
