/// Child processes of a sweep: started without a shell, waited for without polling, interrupted
/// together.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/system/child_process.h"

namespace pipewright {

/// While an object lives, SIGINT, SIGTERM and SIGHUP do not end this process but are reported by
/// wait(); children are in process groups of their own, so that Ctrl-C reaches them only through
/// interrupt(). One thread, one object at a time.
class SweepProcesses {
 public:
  struct Event {
    enum class Kind { Ended, Signal, Nothing } kind = Kind::Nothing;
    pid_t child = 0;
    int exit_code = 0;  ///< of Ended
    int signal = 0;     ///< that killed the child, or that we got
  };

  SweepProcesses();
  /// Kills and reaps what still runs.
  ~SweepProcesses();
  SweepProcesses(const SweepProcesses&) = delete;
  SweepProcesses& operator=(const SweepProcesses&) = delete;

  /// Starts `arguments[0]` with its output appended to `log` and nothing to read. Throws as
  /// ChildProcess.
  pid_t start(const std::vector<std::string>& arguments, const std::filesystem::path& log);
  /// Sleeps until a child has ended (and is reaped), a signal has come or the time is over.
  Event wait(std::chrono::milliseconds at_most);
  /// SIGINT to every child.
  void interrupt() const;
  std::size_t running() const { return children_.size(); }

 private:
  bool reap(Event& event);

  std::vector<ChildProcess> children_;
  sigset_t watched_{};
  sigset_t before_{};
};

}  // namespace pipewright
