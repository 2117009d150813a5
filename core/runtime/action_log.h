/// What every worker did last: for the message and the files that a failure leaves.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Each worker's thread writes its own; any thread reads at any time, without waiting. What is
/// being written at that moment may come out mixed; nothing else does.
class ActionLog {
 public:
  static constexpr std::int64_t kLength = 64;  ///< actions kept of each worker

  explicit ActionLog(int workers);

  /// `shape`: of the schedule that the action is from.
  void begin(int worker, const Action& action, const PipelineShape& shape);
  /// "stage 2, 2F17": the action begun last; "" before the first.
  std::string current(int worker) const;
  /// The last actions, oldest first, a line each: action, seconds since the log began, and whether
  /// it was of an evaluation. "" before the first, and for workers of other processes.
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
    const Record& of(std::int64_t number) const {
      return records[static_cast<std::size_t>(number % kLength)];
    }
  };

  std::deque<Worker> workers_;  ///< never moved
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace pipewright
