// SPDX-License-Identifier: Apache-2.0
/// The state of the other processes of a team (alive, active, silent) as one process knows it, its
/// messages to them, and the failure that ends the team.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/processes/mail.h"
#include "core/processes/process_identity.h"
#include "core/processes/team_notes.h"
#include "core/processes/team_patience.h"
#include "core/processes/wire.h"

namespace pipewright {

/// Not thread-safe: callers hold the keeper's mutex. Functions throw what the wire throws, and
/// Error{Worker} if a note is damaged.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  struct Failure {
    Error error;
    int speaker = 0;  ///< the process that reports to the user
    TimePoint since;
  };

  /// Sends a hello note to all. The wire and `patience` must outlive it.
  Peers(Wire& wire, const TeamPatience& patience);

  int rank() const { return rank_; }
  int size() const { return size_; }

  void tell_all(const TeamNote& note);
  /// Reads all notes that have arrived.
  void listen();
  void set_activity(std::function<std::string()> activity) { activity_ = std::move(activity); }
  bool has_activity() const { return static_cast<bool>(activity_); }
  /// Sends a heartbeat with this process's action and the time it has stood still.
  void beat(std::chrono::milliseconds still);
  /// This process and its current action: "worker 1, 2F17".
  std::string where() const;

  /// Notes the time, that of `round`, at which pieces of messages have arrived since the last call.
  void note_progress(const Mail& mail, TimePoint round);
  /// Does not count the time `gap`, in which this process itself was stopped, as silence of others.
  void forgive(Clock::duration gap);

  /// The error that another process has died, if one has.
  std::optional<Error> death() const;
  /// The error that another process has been silent for too long by `time`, if one has.
  std::optional<Error> silence(TimePoint time) const;
  /// Whether all other processes have stood still for the deadlock timeout.
  bool others_stand_still() const;
  /// Whether a process has said farewell.
  bool left(int process) const { return peer_of(process).left; }
  /// Whether every other process has said who it is.
  bool known() const;
  /// Whether every other process has said farewell, died or fallen silent.
  bool others_left() const;

  const std::optional<Failure>& failure() const { return failure_; }
  /// Makes `error` the team's failure and tells all processes.
  void fail(const Error& error);
  /// Calls `act`. An exception becomes the team's failure, as one of this process's worker.
  void try_to(const std::function<void()>& act);

 private:
  struct Peer {
    ProcessIdentity identity;
    std::string activity;
    std::chrono::milliseconds still{0};  ///< the value of its last heartbeat
    TimePoint heard;                     ///< time of its last note or piece of a message
    std::int64_t come = 0;               ///< pieces received from it
    TimePoint piece_came;
    bool amid = false;               ///< a message from it has arrived in part
    Clock::duration longest_gap{0};  ///< longest time between two pieces of that message
    bool left = false;               ///< it has said farewell
    bool finished = false;           ///< it has done its work
  };

  const Peer& peer_of(int process) const { return peers_[static_cast<std::size_t>(process)]; }
  void understand(const Wire::Note& note);
  Error lost(int process, const std::string& what) const;
  bool dead(const Peer& peer) const;
  bool silent(const Peer& peer, TimePoint time) const;
  Clock::duration silence_of(const Peer& peer) const;
  int first_living() const;

  Wire& wire_;
  const TeamPatience& patience_;
  const int rank_, size_;
  std::vector<Peer> peers_;
  std::optional<Failure> failure_;
  std::function<std::string()> activity_;
  std::string last_activity_;  ///< the action of the last heartbeat
};

}  // namespace pipewright
