// SPDX-License-Identifier: Apache-2.0
/// Progress of a sweep for the user: one refreshed line on a terminal, otherwise a line per
/// finished run.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "core/system/terminal.h"

namespace pipewright {

/// Seconds that `remaining` runs still take at the pace of `ended` ones, which took `seconds` in
/// all; the last of them ended `since` seconds ago. It falls steadily while runs are under way.
double seconds_left(double seconds, std::size_t ended, std::size_t remaining, double since);

class SweepProgress {
 public:
  /// `done` of the `total` runs are finished already. `out` must outlive this object.
  SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done);

  void started(const std::string& title);
  /// Reports a finished run: "[12/66] PD4 seed 2: test_accuracy 0.93 (1.2 s)". On a terminal only
  /// lines of failed runs remain.
  void ended(const std::string& title, const std::string& outcome, bool failed);
  /// Prints a line that remains.
  void line(const std::string& text);
  /// Redraws the line of the terminal with the present times.
  void refresh();

 private:
  using Clock = std::chrono::steady_clock;
  std::string status() const;

  std::FILE* out_;
  StatusLine status_;
  std::size_t total_, done_, ended_ = 0;
  std::vector<std::pair<std::string, Clock::time_point>> running_;
  Clock::time_point start_ = Clock::now(), last_end_ = start_;
};

}  // namespace pipewright
