// SPDX-License-Identifier: Apache-2.0
/// Child processes of a sweep: programs started without a shell or copies of this process, waited
/// for without polling, and interrupted together.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/system/child_process.h"

namespace pipewright {

/// Children are interrupted when this process is killed, too: they save their state and end. While
/// an object lives, SIGINT, SIGTERM and SIGHUP do not end this process but are reported by
/// wait(). Children are in process groups of their own, so that Ctrl-C reaches them only through
/// interrupt(). Only one object may exist at a time, used by one thread, with whose end its
/// children end, too.
class SweepProcesses {
 public:
  struct Event {
    enum class Kind { Ended, Signal, Nothing } kind = Kind::Nothing;
    pid_t child = 0;
    int exit_code = 0;  ///< for Ended
    int signal = 0;     ///< signal that killed the child, or that this process got
  };

  SweepProcesses();
  /// Kills and reaps children that still run.
  ~SweepProcesses();
  SweepProcesses(const SweepProcesses&) = delete;
  SweepProcesses& operator=(const SweepProcesses&) = delete;

  /// Starts the program `arguments[0]`. Its output is appended to `log`, its input is empty. Throws
  /// as ChildProcess does.
  pid_t start(const std::vector<std::string>& arguments, const std::filesystem::path& log);
  /// Starts a copy of this process that performs `work` and exits with what it returns; otherwise
  /// as above. Throws as ChildProcess::forked() does.
  pid_t start(const std::function<int()>& work, const std::filesystem::path& log);
  /// Sleeps until a child has ended (and is reaped), a signal arrives or the time is over.
  Event wait(std::chrono::milliseconds at_most);
  /// Interrupts every child for the first, second or a later time: with SIGINT; again, and a
  /// process that was stopped goes on to hear of it; with SIGKILL.
  void interrupt(int times) const;
  std::size_t running() const { return children_.size(); }

 private:
  ChildSettings settings_with(const std::filesystem::path& log) const;
  bool reap(Event& event);

  std::vector<ChildProcess> children_;
  sigset_t watched_{};
  sigset_t before_{};
};

}  // namespace pipewright
