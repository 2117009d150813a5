// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_progress.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void SweepPace::news(double seconds, double done) {
  if (done <= done_) return;
  seconds_ = seconds;
  done_ = done;
}

std::optional<double> SweepPace::left(double seconds, double all) const {
  if (done_ <= 0) return std::nullopt;
  return std::max(0.0, seconds_ / done_ * (all - done_) - (seconds - seconds_));
}

SweepProgress::SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done)
    : out_(out), status_(out, terminal), total_(total), done_(done) {}

void SweepProgress::started(const std::string& title) {
  running_.push_back({title, Clock::now()});
  refresh();
}

void SweepProgress::progressed(const std::string& title, double share) {
  const auto run = std::ranges::find(running_, title, &Running::title);
  if (run == running_.end() || share <= run->share) return;
  run->share = share;
  tell_pace();
}

void SweepProgress::tell_pace() {
  double done = static_cast<double>(ended_);
  for (const Running& run : running_) done += run.share;
  pace_.news(seconds_since(start_), done);
}

void SweepProgress::ended(const std::string& title, const std::string& outcome, bool failed) {
  const auto run = std::ranges::find(running_, title, &Running::title);
  const double seconds = run == running_.end() ? 0 : seconds_since(run->start);
  if (run != running_.end()) running_.erase(run);
  ++done_;
  ++ended_;
  tell_pace();
  if (!status_.terminal() || failed)
    line(concat("[", done_, "/", total_, "] ", title, ": ", outcome, " (", duration_text(seconds),
                ")"));
  refresh();
}

void SweepProgress::line(const std::string& text) {
  status_.clear();
  print_to(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

std::string SweepProgress::status() const {
  const double elapsed = seconds_since(start_);
  std::vector<std::string> running;
  for (const Running& run : running_)
    running.push_back(run.share > 0 ? concat(run.title, " (", std::lround(100 * run.share), " %)")
                                    : run.title);
  std::string text = concat(done_, "/", counted(total_, "run"), ", ", duration_text(elapsed));
  const auto all = static_cast<double>(total_ - done_ + ended_);
  if (const auto left = pace_.left(elapsed, all); left && done_ < total_)
    text += concat(", ", duration_text(*left), " left");
  return running.empty() ? text : concat(text, "; running: ", join(running, ", "));
}

void SweepProgress::refresh() {
  if (status_.terminal()) status_.show(status());
}

}  // namespace pipewright
