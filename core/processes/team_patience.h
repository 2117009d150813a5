// SPDX-License-Identifier: Apache-2.0
/// Intervals and timeouts of a team of processes.
#pragma once

#include <chrono>

namespace pipewright {

/// These values end a run within 10 s of a failure (`standstill` and `computing` do not matter
/// then).
struct TeamPatience {
  std::chrono::milliseconds heartbeat{500};  ///< interval of heartbeats
  std::chrono::milliseconds death{100};      ///< interval of checks whether a process has died
  std::chrono::milliseconds silence{
      5000};  ///< time without a note or piece after which a process counts as stopped
  std::chrono::milliseconds reaction{
      3000};  ///< time that our own work has to react to a failure elsewhere
  std::chrono::milliseconds after_signal{
      500};  ///< time it has to react to a signal: MPI kills 1 s after it
  std::chrono::milliseconds last_look{250};  ///< time to look for a death that caused a signal
  /// Deadlock timeout (`pipeline.timeout`): how long all processes wait while no piece of any
  /// message is sent or received.
  std::chrono::milliseconds standstill{60000};
  /// Added to the deadlock timeout while a device may be computing; longer than any mini-batch
  /// takes.
  std::chrono::milliseconds computing{540000};
  /// The clock for all of them; tests replace it.
  std::chrono::steady_clock::time_point (*now)() = &std::chrono::steady_clock::now;
};

}  // namespace pipewright
