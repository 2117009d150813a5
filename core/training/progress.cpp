// SPDX-License-Identifier: Apache-2.0
#include "core/training/progress.h"

#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/system/terminal.h"

namespace pipewright {

Progress::Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet)
    : name_(std::move(name)),
      total_(total),
      first_(done),
      quiet_(quiet),
      shows_bar_(!quiet && takes_escapes(stderr)),
      done_(done) {}

void Progress::step() {
  done_.fetch_add(1, std::memory_order_relaxed);
  if (!shows_bar_) return;
  const Clock::duration now = Clock::now() - start_;
  Clock::duration due = next_drawing_.load(std::memory_order_relaxed);
  if (now < due || !next_drawing_.compare_exchange_strong(due, now + kBetweenDrawings)) return;
  const Lock lock(drawing_);
  draw();
}

void Progress::draw() {
  constexpr int kWidth = 30;
  const std::int64_t done = done_.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = static_cast<double>(done - first_) / std::max(seconds, 1e-9);
  const double left = static_cast<double>(total_ - done) / std::max(rate, 1e-9);
  std::string bar;
  const std::int64_t filled = total_ > 0 ? done * kWidth / total_ : kWidth;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "·";
  bar_.show(concat(name_, " ", bar, " ", done, "/", total_, " mini-batches, ", std::lround(rate),
                   "/s, ", duration_text(left), " left"));
}

void Progress::epoch(const EpochRow& row, int epochs, const std::vector<std::string>& metrics) {
  auto shown = [](double value, int digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::string(text);
  };
  std::string text =
      concat("epoch ", row.epoch + 1, "/", epochs, "  loss ", shown(row.train_loss, 4));
  if (!std::isnan(row.test_loss)) text += concat("  test loss ", shown(row.test_loss, 4));
  if (!std::isnan(row.test_accuracy))
    text += concat("  test accuracy ", shown(100 * row.test_accuracy, 2), " %");
  else if (!metrics.empty() && !std::isnan(row.metrics.front()))
    text += concat("  test ", metrics.front(), " ", shown(row.metrics.front(), 4));
  line(concat(text, "  ", duration_text(row.seconds), " (", std::lround(row.samples_per_second),
              " samples/s)"));
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  const Lock lock(drawing_);
  bar_.clear();
  print_error("%s\n", text.c_str());
}

}  // namespace pipewright
