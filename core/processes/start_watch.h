// SPDX-License-Identifier: Apache-2.0
/// The launcher's watch over its processes while their team does not speak for itself: which has
/// died, which is stopped, which has not come. While MPI connects them and when it ends, MPI waits
/// without a limit for a process that does not come, and ends the others without a word where one
/// dies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/processes/start_words.h"

namespace pipewright {

/// A process that mpirun has started on this machine.
struct StartedProcess {
  int rank = 0;
  pid_t process = 0;
  char state = 'R';  ///< as in proc(5); Z: only its exit code is left, T: stopped by a signal
};

/// The processes that `mpirun` has started with a rank. One of another machine is not among them.
std::vector<StartedProcess> started_by(pid_t mpirun);

/// Limits on a start, and the clock for them.
struct StartPatience {
  using Clock = std::chrono::steady_clock;
  /// How long a process may be stopped: longer than TeamPatience::silence, so that a team that
  /// notices it reports it.
  Clock::duration stopped = std::chrono::seconds(6);
  /// How long MPI may take to connect the processes.
  Clock::duration connecting = std::chrono::seconds(60);
};

/// Not thread-safe.
class StartWatch {
 public:
  using TimePoint = StartPatience::Clock::time_point;

  /// `host`: the name of this machine, for messages.
  StartWatch(int processes, std::string host, StartPatience patience = {});

  void hear(const StartWord& word);
  /// Compares the processes of this machine with those of the last look.
  void look(const std::vector<StartedProcess>& now, TimePoint time);

  /// Whether the start is over: the team reports its failures itself.
  bool over() const { return team_speaks_; }
  /// Whether a process has done its work, so that the team may not hear of a failure any more.
  bool ending() const { return ending_; }
  /// Whether a process has reported why the run ends.
  bool said() const { return said_; }
  /// Whether a process has died before it had done its work; mpirun then ends the others.
  bool lost() const { return lost_.has_value() && !ending_; }
  /// The process that has been stopped for too long and is to be killed; 0: none.
  pid_t stopped() const { return lost_ && lost_->stopped ? lost_->process : 0; }
  /// Whether MPI takes too long to connect the processes.
  bool late() const { return late_; }

  /// The error to report if no process has reported one and mpirun has ended with a `code` that is
  /// none of ours, or a process is stopped, or MPI is late.
  Error error(int code) const;

 private:
  using Duration = StartPatience::Clock::duration;
  struct Seen {
    pid_t process = 0;
    Duration stopped{0};
  };
  struct Lost {
    int rank = 0;
    pid_t process = 0;
    bool stopped = false;
    bool first = false;  ///< certainly the first one, for whose sake the others end
  };

  void note(const StartedProcess& each, Duration since_last_look);
  void lose(const std::vector<Lost>& lost);
  std::vector<int> without_word() const;
  /// The rank of the only process of which nothing has been seen or heard.
  std::optional<int> only_unseen() const;

  const int processes_;
  const std::string host_;
  const StartPatience patience_;
  std::map<int, Seen> seen_;  ///< by rank
  std::set<int> begun_;       ///< ranks
  Duration waited_{0};        ///< since the first word
  std::optional<TimePoint> last_look_;
  bool team_speaks_ = false, ending_ = false, said_ = false;
  std::optional<Lost> lost_;  ///< the first process that has died or is stopped
  bool late_ = false;         ///< MPI takes too long
};

}  // namespace pipewright
