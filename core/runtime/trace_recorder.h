// SPDX-License-Identifier: Apache-2.0
/// Records when each instruction of an execution ran, and which part of it was waiting, coding and
/// sending. Without a trace to fill it does nothing and reads no clock.
#pragma once

#include <chrono>
#include <vector>

#include "core/runtime/program.h"
#include "core/runtime/team.h"
#include "core/simulation/span.h"

namespace pipewright {

/// Workers may call it at the same time, each about itself only.
class TraceRecorder {
 public:
  /// `trace` is filled with the spans of every worker; null: nothing is recorded.
  TraceRecorder(const Program& program, std::vector<std::vector<Span>>* trace);

  bool on() const { return trace_ != nullptr; }
  /// The worker begins its next instruction.
  void begin(int worker);
  /// A message that the instruction waited for has arrived: it begins only now.
  void arrived(int worker);
  void decoded(int worker, double seconds) {
    if (on()) open_[static_cast<std::size_t>(worker)].decoding += seconds;
  }
  void encoded(int worker, double seconds) {
    if (on()) open_[static_cast<std::size_t>(worker)].encoding += seconds;
  }
  /// Calls `send`, which hands a message to the transport; what it takes is sending.
  template <class Send>
  void sending(int worker, const Send& send) {
    if (!on()) return send();
    const double begin = now();
    send();
    open_[static_cast<std::size_t>(worker)].sending += now() - begin;
  }
  /// The worker has ended its instruction.
  void end(int worker);

  /// Collective: process 0 gets the spans of all workers, with the times of processes on its host
  /// on its own clock. On other hosts times are since their own beginning.
  void gather(Team& team);

 private:
  using Clock = std::chrono::steady_clock;
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  const Program& program_;
  std::vector<std::vector<Span>>* const trace_;
  std::vector<Span> open_;  ///< of the instruction that each worker performs
  Clock::time_point start_ = Clock::now();
};

}  // namespace pipewright
