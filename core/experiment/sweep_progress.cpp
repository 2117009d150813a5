#include "core/experiment/sweep_progress.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "core/base/text.h"

namespace pipewright {
namespace {

std::size_t terminal_width(std::FILE* out) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 100;
}

/// The first `width` characters of the text, the last of them "…" where some are missing.
std::string cut(const std::string& text, std::size_t width) {
  std::size_t characters = 0, last = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++characters == width) last = i;
    if (characters > width) return text.substr(0, last) + "…";
  }
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SweepProgress::SweepProgress(std::FILE* out, bool terminal, std::size_t total, std::size_t done)
    : out_(out), terminal_(terminal), total_(total), done_(done) {}

SweepProgress::~SweepProgress() {
  clear();
}

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
  if (!terminal_ || failed)
    line(concat("[", done_, "/", total_, "] ", title, ": ", outcome, " (", duration_text(seconds),
                ")"));
  refresh();
}

void SweepProgress::line(const std::string& text) {
  clear();
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

std::string SweepProgress::status() const {
  const double elapsed = seconds_since(start_);
  std::vector<std::string> titles;
  for (const auto& [title, start] : running_) titles.push_back(title);
  std::string text = concat(done_, "/", total_, " runs, ", duration_text(elapsed));
  if (ended_ > 0 && done_ < total_)
    text += concat(
        ", ",
        duration_text(elapsed / static_cast<double>(ended_) * static_cast<double>(total_ - done_)),
        " left");
  return titles.empty() ? text : concat(text, "; running: ", join(titles, ", "));
}

void SweepProgress::refresh() {
  if (!terminal_) return;
  std::fprintf(out_, "\r\033[K%s", cut(status(), terminal_width(out_) - 1).c_str());
  std::fflush(out_);
  drawn_ = true;
}

void SweepProgress::clear() {
  if (!drawn_) return;
  std::fprintf(out_, "\r\033[K");
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace pipewright
