/// What a person sees of a run: a bar with rate and time left on a terminal, plain lines otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "core/records/run_folder.h"
#include "core/system/terminal.h"

namespace pipewright {

/// step() may be called from any thread; the rest from one.
class Progress {
 public:
  /// `quiet` prints nothing. `total` mini-batches of `samples` each, the first `done` of them
  /// behind us.
  Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet);

  void step();
  /// A line about a finished epoch.
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
