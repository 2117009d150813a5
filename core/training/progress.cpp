// SPDX-License-Identifier: Apache-2.0
#include "core/training/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

std::string shown(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// What a row says of test samples.
template <class Row>
std::string measured(const Row& row, const std::vector<std::string>& metrics) {
  std::string text;
  if (!std::isnan(row.test_loss)) text += concat("  test loss ", shown(row.test_loss, 4));
  if (!std::isnan(row.test_accuracy))
    text += concat("  test accuracy ", shown(100 * row.test_accuracy, 2), " %");
  else if (!metrics.empty() && !std::isnan(row.metrics.front()))
    text += concat("  test ", metrics.front(), " ", shown(row.metrics.front(), 4));
  return text;
}

}  // namespace

std::string progress_text(std::int64_t done, std::int64_t first, std::int64_t total,
                          double seconds) {
  const double rate = static_cast<double>(done - first) / std::max(seconds, 1e-9);
  const double left = static_cast<double>(total - done) / std::max(rate, 1e-9);
  return concat(done, "/", total, " mini-batches, ", std::lround(rate), "/s, ", duration_text(left),
                " left");
}

Progress::Progress(std::string name, std::int64_t total, std::int64_t done, bool quiet)
    : name_(std::move(name)),
      total_(total),
      first_(done),
      quiet_(quiet),
      shows_bar_(!quiet && takes_escapes(stderr)),
      done_(done) {}

void Progress::step() {
  done_.fetch_add(1, std::memory_order_relaxed);
  if (quiet_) return;
  const Clock::duration now = Clock::now() - start_;
  Clock::duration due = next_drawing_.load(std::memory_order_relaxed);
  if (now < due || !next_drawing_.compare_exchange_strong(due, now + between(now))) return;
  const Lock lock(drawing_);
  draw();
}

/// Lines of a log come more and more slowly, so that a long run does not fill it.
Progress::Clock::duration Progress::between(Clock::duration now) const {
  if (shows_bar_) return std::chrono::milliseconds(100);
  return std::max<Clock::duration>(std::chrono::seconds(30), now / 10);
}

void Progress::draw() {
  constexpr int kWidth = 30;
  const std::int64_t done = done_.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string text = progress_text(done, first_, total_, seconds);
  if (!shows_bar_) return print_error("%s\n", text.c_str());
  std::string bar;
  const std::int64_t filled = total_ > 0 ? done * kWidth / total_ : kWidth;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "·";
  bar_.show(concat(name_, " ", bar, " ", text));
}

void Progress::epoch(const EpochRow& row, int epochs, const std::vector<std::string>& metrics) {
  line(concat("epoch ", row.epoch + 1, "/", epochs, "  loss ", shown(row.train_loss, 4),
              measured(row, metrics), "  ", duration_text(row.seconds), " (",
              std::lround(row.samples_per_second), " samples/s)"));
}

void Progress::evaluation(const EvaluationRow& row, std::int64_t minibatches,
                          const std::vector<std::string>& metrics) {
  line(concat("mini-batch ", row.minibatches, "/", minibatches, measured(row, metrics)));
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  const Lock lock(drawing_);
  bar_.clear();
  print_error("%s\n", text.c_str());
}

}  // namespace pipewright
