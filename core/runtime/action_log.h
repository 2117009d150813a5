// SPDX-License-Identifier: Apache-2.0
/// The last actions of every worker, for the error message and the files that a failure leaves.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// A ring buffer of actions for each worker. Each worker's thread writes its own; any thread reads
/// at any time without a lock. A record that is overwritten while it is read may mix two actions.
class ActionLog {
 public:
  static constexpr std::int64_t kLength = 64;  ///< actions kept for each worker

  explicit ActionLog(int workers);

  /// Records that the worker begins `action`; `shape` is that of the action's schedule.
  void begin(int worker, const Action& action, const PipelineShape& shape);
  /// The action begun last, as in "stage 2, 2F17"; "" before the first.
  std::string current(int worker) const;
  /// The last actions, oldest first, one per line: its name, the seconds since the log was made,
  /// and " evaluation" if it belongs to one. "" before the first, and for workers of other
  /// processes.
  std::string last(int worker) const;
  int workers() const { return static_cast<int>(workers_.size()); }

 private:
  struct Record {
    std::atomic<int> minibatch, microbatch, stage, loss;
    std::atomic<ActionKind> kind;
    std::atomic<bool> microbatches, training;
    std::atomic<double> began;
    std::string name() const;
  };
  struct Worker {
    std::array<Record, kLength> records{};
    std::atomic<std::int64_t> begun = 0;
    const Record& record(std::int64_t number) const {
      return records[static_cast<std::size_t>(number % kLength)];
    }
  };

  std::deque<Worker> workers_;  ///< a deque, because atomics cannot be moved
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace pipewright
