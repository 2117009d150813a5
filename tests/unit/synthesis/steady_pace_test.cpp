// SPDX-License-Identifier: Apache-2.0
// The pace of schedules that repeat themselves, and of others.
#include "core/synthesis/steady_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

/// One worker that does a forward for each of these mini-batches at these times, for 1 s.
struct Timed {
  Schedule schedule;
  Simulation simulation;
};

Timed at_times(const std::vector<std::pair<int, double>>& forwards) {
  Timed timed;
  timed.schedule.shape.minibatches = static_cast<int>(forwards.size());
  timed.schedule.workers.resize(1);
  timed.simulation.spans.resize(1);
  timed.simulation.minibatch_ends.resize(forwards.size());
  for (const auto& [minibatch, begin] : forwards) {
    timed.schedule.workers[0].push_back({.minibatch = minibatch});
    timed.simulation.spans[0].push_back({.begin = begin, .end = begin + 1});
    timed.simulation.minibatch_ends[as_size(minibatch)] = begin + 1;
    timed.simulation.makespan = std::max(timed.simulation.makespan, begin + 1);
  }
  return timed;
}

SteadyPace pace_of(const Timed& timed) {
  return steady_pace(timed.schedule, timed.simulation);
}

/// Bunches of `size` mini-batches, one behind the other, that begin every 10 s.
Timed bunches(int size, int minibatches) {
  std::vector<std::pair<int, double>> forwards;
  for (int i = 0; i < minibatches; ++i) forwards.emplace_back(i, 10.0 * (i / size) + i % size);
  return at_times(forwards);
}

TEST(SteadyPace, IsThatOfWholePeriods) {
  // From mini-batch 10 to 30 of 40 there are 20, which is no whole number of bunches of 3.
  for (const int size : {1, 2, 3, 4, 5}) {
    const Timed timed = bunches(size, 40);
    EXPECT_TRUE(pace_of(timed).repeats) << size;
    EXPECT_DOUBLE_EQ(pace_of(timed).seconds, 10.0 / size) << size;
  }
  const double measured = bunches(3, 40).simulation.seconds_per_minibatch();
  EXPECT_GT(std::abs(measured - 10.0 / 3), 0.1);  // so their average is another
}

TEST(SteadyPace, IsThatOfTheWholeScheduleWhereNoPeriodIsSeenTwice) {
  for (const Timed& timed :
       {bunches(6, 12),
        at_times({{0, 0}, {1, 1}, {2, 3}, {3, 6}, {4, 10}, {5, 15}, {6, 21}, {7, 28}})}) {
    EXPECT_FALSE(pace_of(timed).repeats);
    EXPECT_EQ(pace_of(timed).seconds, timed.simulation.makespan / timed.schedule.shape.minibatches);
  }
}

TEST(SteadyPace, NeedsMoreMinibatchesWhereAWorkerGoesBack) {
  // Each pair is done in the other order: 1, 0, 3, 2, …, a period of 2.
  const auto swapped = [](int minibatches) {
    std::vector<std::pair<int, double>> forwards;
    for (int i = 0; i < minibatches; i += 2) {
      forwards.emplace_back(i + 1, 2.0 * i);
      forwards.emplace_back(i, 2.0 * i + 1);
    }
    return at_times(forwards);
  };
  EXPECT_TRUE(pace_of(swapped(8)).repeats);   // 5 of them are in the middle half: 2 · 2 + 1
  EXPECT_FALSE(pace_of(swapped(6)).repeats);  // 4
  EXPECT_EQ(pace_of(swapped(8)).seconds, 2);
}

}  // namespace
}  // namespace pipewright
