// SPDX-License-Identifier: Apache-2.0
/// Ends the processes of a team together after a failure: they agree on one error and on the
/// process that reports it, and a process whose work does not react is ended as well.
#pragma once

#include <atomic>
#include <functional>

#include "core/processes/keeper.h"

namespace pipewright {

/// The working thread and the keeper's thread may call it at the same time.
class Farewell {
 public:
  explicit Farewell(Keeper& keeper) : keeper_(keeper) {}

  /// Implementations of the functions of Team.
  Error agree_on(const Error& error);
  bool reports_to_user();
  void set_emergency(std::function<void(const Error&, bool speaks)> report);

  /// Ends the process if its work has not reacted in time to a failure or a signal, after reporting
  /// in its place. The keeper's thread calls it after each round.
  void end_if_stuck();
  /// Ends all processes. Those other than the speaker wait for it to do so.
  [[noreturn]] void end_all(int exit_code);

 private:
  Keeper& keeper_;
  Mutex
      emergency_mutex_;  ///< held during the report; never locked while the keeper's mutex is held
  std::function<void(const Error&, bool speaks)> emergency_ PIPEWRIGHT_GUARDED_BY(emergency_mutex_);
  enum class Reporter { Nobody, Work, Keeper };
  std::atomic<Reporter> reporter_ = Reporter::Nobody;
  std::atomic<bool> leaving_ = false;
};

}  // namespace pipewright
