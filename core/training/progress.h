// SPDX-License-Identifier: Apache-2.0
/// Progress of a run on standard error: on a terminal a bar with rate and time left, otherwise
/// plain lines, one for each epoch and, where epochs are long, now and then one with the same.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "core/base/mutex.h"
#include "core/records/run_folder.h"
#include "core/system/terminal.h"

namespace pipewright {

/// "120/880 mini-batches, 12/s, 1 min left": of a run whose session began with mini-batch `first`
/// and has trained for so many seconds.
std::string progress_text(std::int64_t done, std::int64_t first, std::int64_t total,
                          double seconds);

/// step() is thread-safe; the other functions belong to one thread.
class Progress {
 public:
  /// `total`: mini-batches of the run; `done`: those trained already. `quiet`: print nothing.
  Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet);

  void step();
  /// Prints a line about a finished epoch. Where accuracy means nothing, it has the first of the
  /// other metrics, whose names are given.
  void epoch(const EpochRow& row, int epochs, const std::vector<std::string>& metrics);
  /// Prints a line about an evaluation within the training of so many mini-batches.
  void evaluation(const EvaluationRow& row, std::int64_t minibatches,
                  const std::vector<std::string>& metrics);
  void line(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void draw() PIPEWRIGHT_REQUIRES(drawing_);
  Clock::duration between(Clock::duration now) const;

  const std::string name_;
  const std::int64_t total_, first_;
  const bool quiet_, shows_bar_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::int64_t> done_;
  std::atomic<Clock::duration> next_drawing_{between({})};  ///< since start_
  Mutex drawing_;
  StatusLine bar_ PIPEWRIGHT_GUARDED_BY(drawing_){stderr, shows_bar_};
};

}  // namespace pipewright
