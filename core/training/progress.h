// SPDX-License-Identifier: Apache-2.0
/// Progress of a run on standard error: on a terminal a bar with rate and time left, otherwise
/// plain lines.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "core/records/run_folder.h"
#include "core/system/terminal.h"

namespace pipewright {

/// step() is thread-safe; the other functions belong to one thread.
class Progress {
 public:
  /// `total`: mini-batches of the run; `done`: those trained already. `quiet`: print nothing.
  Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet);

  void step();
  /// Prints a line about a finished epoch.
  void epoch(const EpochRow& row, int epochs);
  void line(const std::string& text);

 private:
  void draw();
  using Clock = std::chrono::steady_clock;

  std::string name_;
  std::int64_t total_, first_;
  bool quiet_;
  std::atomic<std::int64_t> done_;
  std::mutex drawing_;
  Clock::time_point start_ = Clock::now(), drawn_ = start_;
  StatusLine bar_{stderr};
};

}  // namespace pipewright
