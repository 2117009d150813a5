// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_progress.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double seconds_left(double seconds, std::size_t ended, std::size_t remaining, double since) {
  const double pace = seconds / static_cast<double>(ended);
  return std::max(0.0, pace * static_cast<double>(remaining) - since);
}

SweepProgress::SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done)
    : out_(out), status_(out, terminal), total_(total), done_(done) {}

void SweepProgress::started(const std::string& title) {
  running_.emplace_back(title, Clock::now());
  refresh();
}

void SweepProgress::ended(const std::string& title, const std::string& outcome, bool failed) {
  const auto run =
      std::ranges::find(running_, title, [](const auto& entry) { return entry.first; });
  const double seconds = run == running_.end() ? 0 : seconds_since(run->second);
  if (run != running_.end()) running_.erase(run);
  ++done_;
  ++ended_;
  last_end_ = Clock::now();
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
  const double elapsed = seconds_since(start_), since = seconds_since(last_end_);
  std::vector<std::string> titles;
  for (const auto& [title, start] : running_) titles.push_back(title);
  std::string text = concat(done_, "/", counted(total_, "run"), ", ", duration_text(elapsed));
  if (ended_ > 0 && done_ < total_)
    text += concat(
        ", ", duration_text(seconds_left(elapsed - since, ended_, total_ - done_, since)), " left");
  return titles.empty() ? text : concat(text, "; running: ", join(titles, ", "));
}

void SweepProgress::refresh() {
  if (status_.terminal()) status_.show(status());
}

}  // namespace pipewright
