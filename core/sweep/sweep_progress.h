/// What a person sees of a sweep: one refreshed line on a terminal, a line per finished run
/// otherwise.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "core/system/terminal.h"

namespace pipewright {

class SweepProgress {
 public:
  /// `done` of the `total` runs were finished before. `out` outlives this object.
  SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done);

  void started(const std::string& title);
  /// "[12/66] PD4 seed 2: test_accuracy 0.93 (1.2 s)". A terminal keeps only the lines of runs that
  /// failed.
  void ended(const std::string& title, const std::string& outcome, bool failed);
  /// A line of its own.
  void line(const std::string& text);
  /// Draws the terminal's line anew: time has passed.
  void refresh();

 private:
  using Clock = std::chrono::steady_clock;
  std::string status() const;

  std::FILE* out_;
  StatusLine status_;
  std::size_t total_, done_, ended_ = 0;
  std::vector<std::pair<std::string, Clock::time_point>> running_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace pipewright
