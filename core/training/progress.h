// SPDX-License-Identifier: Apache-2.0
/// Progress of a run on standard error: on a terminal a bar with rate and time left, otherwise
/// plain lines.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "core/base/mutex.h"
#include "core/records/run_folder.h"
#include "core/system/terminal.h"

namespace pipewright {

/// step() is thread-safe; the other functions belong to one thread.
class Progress {
 public:
  /// `total`: mini-batches of the run; `done`: those trained already. `quiet`: print nothing.
  Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet);

  void step();
  /// Prints a line about a finished epoch. Where accuracy means nothing, it has the first of the
  /// other metrics, whose names are given.
  void epoch(const EpochRow& row, int epochs, const std::vector<std::string>& metrics);
  void line(const std::string& text);

 private:
  void draw() PIPEWRIGHT_REQUIRES(drawing_);
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kBetweenDrawings = std::chrono::milliseconds(100);

  const std::string name_;
  const std::int64_t total_, first_;
  const bool quiet_, shows_bar_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::int64_t> done_;
  std::atomic<Clock::duration> next_drawing_{kBetweenDrawings};  ///< since start_
  Mutex drawing_;
  StatusLine bar_ PIPEWRIGHT_GUARDED_BY(drawing_){stderr, shows_bar_};
};

}  // namespace pipewright
