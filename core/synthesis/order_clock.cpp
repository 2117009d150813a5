// SPDX-License-Identifier: Apache-2.0
// Orders that are repeated are a system that is linear if max is the sum and + the product: when a
// worker has ended a mini-batch follows from when each of them could begin it, by the longest path
// between the two. The pace is the largest mean of a cycle of such paths (Karp, 1978). Paths from
// all workers are found in one walk, a lane for each.
#include "core/synthesis/order_clock.h"

#include <algorithm>

#include "core/base/as_size.h"

namespace pipewright {

OrderClock::OrderClock(const OrderTask& task)
    : task_(task),
      lanes_(as_size(task.workers)),
      ends_(as_size(task.stages()) * 2 * as_size(task.microbatches) * lanes_),
      free_(lanes_, std::vector<double>(lanes_)),
      done_(as_size(task.stages())),
      next_(lanes_),
      walks_(lanes_ + 1, std::vector<double>(lanes_)) {}

double* OrderClock::row(int stage, Part part, int microbatch) {
  const std::size_t pass =
      (as_size(stage) * 2 + (part == Part::Forward ? 0 : 1)) * as_size(task_.microbatches) +
      as_size(microbatch);
  return ends_.data() + pass * lanes_;
}

Pace OrderClock::pace(const Orders& orders) {
  if (!run(orders)) return {};
  double sum = 0;
  for (std::size_t worker = 0; worker < lanes_; ++worker) sum += free_[worker][worker];
  return {.seconds = longest_cycle(), .mean_span = sum / static_cast<double>(lanes_)};
}

/// Performs all passes, or stops where each worker waits for another one.
bool OrderClock::run(const Orders& orders) {
  std::ranges::fill(next_, 0U);
  std::ranges::fill(done_, std::array<int, kParts>{0, 0, 0});
  for (std::size_t worker = 0; worker < lanes_; ++worker) {
    std::ranges::fill(free_[worker], -kUnlimited);
    free_[worker][worker] = 0;
  }
  bool all = false, some = true;
  while (!all && some) {
    all = true;
    some = false;
    for (std::size_t worker = 0; worker < lanes_; ++worker) {
      const auto& turns = orders[worker];
      while (next_[worker] < turns.size() && perform(turns[next_[worker]], free_[worker])) {
        ++next_[worker];
        some = true;
      }
      all = all && next_[worker] == turns.size();
    }
  }
  return all;
}

/// False if its input is not made yet.
bool OrderClock::perform(const Turn& turn, std::vector<double>& free) {
  auto& done = done_[as_size(turn.stage)];
  int& count = done[static_cast<std::size_t>(turn.part)];
  double seconds = task_.seconds_of(turn);
  if (turn.part == task_.last_part() && count + 1 == task_.microbatches)
    seconds += task_.update[as_size(turn.stage)];
  if (turn.part == Part::Weight) {
    for (double& lane : free) lane += seconds;
    ++count;
    return true;
  }
  const bool forward = turn.part == Part::Forward;
  const int from = forward ? turn.stage - 1 : turn.stage + 1;
  if (from >= 0 && from < task_.stages()) {
    if (done_[as_size(from)][static_cast<std::size_t>(turn.part)] <= count) return false;
    const double delay =
        forward ? task_.forward_delay[as_size(from)] : task_.backward_delay[as_size(from)];
    const double* input = row(from, turn.part, count);
    for (std::size_t lane = 0; lane < lanes_; ++lane)
      free[lane] = std::max(free[lane], input[lane] + delay);
  }
  // An update that follows a whole backward does not delay the gradient.
  double* ends = row(turn.stage, turn.part, count);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    ends[lane] = free[lane] + task_.seconds_of(turn);
    free[lane] += seconds;
  }
  ++count;
  return true;
}

/// The largest mean of a cycle of workers, if free_[v][w] is the way from w to v.
double OrderClock::longest_cycle() {
  std::ranges::fill(walks_.front(), 0.0);
  for (std::size_t length = 1; length <= lanes_; ++length)
    for (std::size_t to = 0; to < lanes_; ++to) {
      double longest = -kUnlimited;
      for (std::size_t from = 0; from < lanes_; ++from)
        longest = std::max(longest, walks_[length - 1][from] + free_[to][from]);
      walks_[length][to] = longest;
    }
  double largest = -kUnlimited;
  for (std::size_t end = 0; end < lanes_; ++end) {
    double least = kUnlimited;
    for (std::size_t length = 0; length < lanes_; ++length)
      least = std::min(least, (walks_[lanes_][end] - walks_[length][end]) /
                                  static_cast<double>(lanes_ - length));
    largest = std::max(largest, least);
  }
  return largest;
}

}  // namespace pipewright
