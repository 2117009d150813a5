// SPDX-License-Identifier: Apache-2.0
/// Progress of a sweep for the user: one refreshed line on a terminal, otherwise a line per
/// finished run.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/system/terminal.h"

namespace pipewright {

/// The pace of a sweep, from news of how much is done. Work is counted in runs, and parts of runs
/// count.
class SweepPace {
 public:
  /// So many seconds after the beginning it is known that `done` runs have been done.
  void news(double seconds, double done);
  /// Seconds that are left of `all` runs at the pace of the last news; none before the first. It
  /// falls as time goes by, so that it does not saw where runs take equal times.
  std::optional<double> left(double seconds, double all) const;

 private:
  double seconds_ = 0, done_ = 0;  ///< of the last news
};

class SweepProgress {
 public:
  /// `done` of the `total` runs are finished already. `out` must outlive this object.
  SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done);

  /// Whether what is told is shown before a run has ended.
  bool shows_status() const { return status_.terminal(); }
  void started(const std::string& title);
  /// A run that is under way has trained this share of its mini-batches.
  void progressed(const std::string& title, double share);
  /// Reports a finished run: "[12/66] PD4 seed 2: test_accuracy 0.93 (1.2 s)". On a terminal only
  /// lines of failed runs remain.
  void ended(const std::string& title, const std::string& outcome, bool failed);
  /// Prints a line that remains.
  void line(const std::string& text);
  /// Redraws the line of the terminal with the present times.
  void refresh();

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::string title;
    Clock::time_point start;
    double share = 0;  ///< trained
  };
  std::string status() const;
  void tell_pace();

  std::FILE* out_;
  StatusLine status_;
  std::size_t total_, done_, ended_ = 0;
  std::vector<Running> running_;
  Clock::time_point start_ = Clock::now();
  SweepPace pace_;
};

}  // namespace pipewright
