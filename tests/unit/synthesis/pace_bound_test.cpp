// SPDX-License-Identifier: Apache-2.0
// No order is faster than the bound: all orders of small tasks are tried.
#include "core/synthesis/pace_bound.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/as_size.h"
#include "core/synthesis/order_clock.h"
#include "core/synthesis/synthesis.h"
#include "tests/unit/synthesis/search_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// All orders of one worker that fit.
std::vector<std::vector<Turn>> all_turns(const OrderTask& task, int worker) {
  std::vector<Turn> turns;
  for (int stage = 0; stage < task.stages(); ++stage)
    for (const Part part : {Part::Forward, Part::Backward, Part::Weight})
      for (int i = 0; i < task.microbatches; ++i)
        if (task.worker_of[as_size(stage)] == worker && (task.split || part != Part::Weight))
          turns.push_back({stage, part});
  const auto before = [](const Turn& a, const Turn& b) {
    return std::pair(a.stage, a.part) < std::pair(b.stage, b.part);
  };
  std::vector<std::vector<Turn>> all;
  do {
    if (fits(task, worker, turns)) all.push_back(turns);
  } while (std::ranges::next_permutation(turns, before).found);
  return all;
}

/// The pace of the fastest of all orders.
double fastest(const OrderTask& task) {
  std::vector<std::vector<std::vector<Turn>>> choices;
  for (int worker = 0; worker < task.workers; ++worker) choices.push_back(all_turns(task, worker));
  std::vector<std::size_t> chosen(choices.size(), 0);
  OrderClock clock(task);
  double least = kUnlimited;
  for (std::size_t worker = 0; worker < chosen.size();) {
    Orders orders;
    for (std::size_t i = 0; i < chosen.size(); ++i) orders.push_back(choices[i][chosen[i]]);
    least = std::min(least, clock.pace(orders).seconds);
    for (worker = 0; worker < chosen.size() && ++chosen[worker] == choices[worker].size(); ++worker)
      chosen[worker] = 0;
  }
  return least;
}

TEST(PaceBound, IsReachedOrBelowTheFastestOfAllOrdersAndTheSearchFindsThat) {
  int reached = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const int stages = seed % 4 < 2 ? 2 : 3;
    const bool split = seed % 2 == 0;
    const int microbatches = split ? 2 : 3;
    OrderTask task = order_task(straight(stages, microbatches), random_costs(stages, seed),
                                ideal_hardware(stages), split);
    for (double& room : task.room) room = static_cast<double>(1 + seed / 4 % 3);
    const double least = fastest(task), bound = pace_bound(task).seconds;
    const double rounding = least * tolerance::rounded64(100);  // sums of fewer passes
    EXPECT_LE(bound, least + rounding) << seed;
    EXPECT_NEAR(synthesize(task, {}).pace.seconds, least, rounding) << seed;
    reached += bound >= least - rounding ? 1 : 0;
    ++tried;
  }
  EXPECT_GE(2 * reached, tried);  // a bound that is never reached would be a poor one
}

TEST(PaceBound, OfAnyScheduleIsNoLargerThanThatOfWholeOrOfSplitBackwards) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<StageCost> costs = random_costs(4, seed);
    PipelineShape shape = straight(4, 6);
    if (seed % 2 == 0) shape.placement = {0, 1, 1, 0};
    const Hardware hardware = ideal_hardware(4);
    OrderTask split = order_task(shape, costs, hardware, true);
    OrderTask whole = order_task(shape, costs, hardware, false);
    for (OrderTask* task : {&split, &whole}) std::ranges::fill(task->room, 3.0);
    const PaceBound any = pace_bound_of_any(split, whole);
    EXPECT_FALSE(any.in_turn);
    EXPECT_GT(any.seconds, 0);
    EXPECT_LE(any.seconds, pace_bound(split).seconds) << seed;
    EXPECT_LE(any.seconds, pace_bound(whole).seconds) << seed;
  }
}

TEST(PaceBound, HoldsForSomeSchedulesOnlyWhereWorkersHaveSeveralStages) {
  // Workers of two stages wait for 2 s while the pipeline fills and drains, unless they begin the
  // next mini-batch meanwhile.
  OrderTask task = equal_task(4, 4, 4);
  EXPECT_FALSE(pace_bound(task).in_turn);
  task.worker_of = {0, 1, 0, 1};
  task.workers = 2;
  task.room.assign(2, 3);
  EXPECT_TRUE(pace_bound(task).in_turn);
  EXPECT_GT(pace_bound(task).seconds, pace_bound_of_any(task, task).seconds);
  task.room.assign(2, kUnlimited);
  EXPECT_FALSE(pace_bound(task).in_turn);  // its work
}

TEST(PaceBound, IsExactForAPipelineThatMayHoldOneMicrobatch) {
  // Each micro-batch then goes alone: forwards and input halves of all 3 stages, the weight half of
  // the first, before the next one begins.
  const OrderTask task = equal_task(3, 4, 1, 2, 3, 1);
  EXPECT_EQ(pace_bound(task).seconds, 4 * (3 * (2 + 3) + 1));
  EXPECT_EQ(synthesize(task, {}).pace.seconds, 4 * (3 * (2 + 3) + 1));
}

TEST(PaceBound, OfOverlappingMinibatchesIsTheWayDividedByHowManyMayOverlap) {
  // 4 stages, F = B = W = 1: a micro-batch takes 4 + 4 + 1 s at stage 0, a worker works for 3 s.
  OrderTask task = equal_task(4, 1, kUnlimited);
  for (const auto& [staleness, seconds] : {std::pair(1, 4.5), {2, 3.0}, {3, 3.0}}) {
    task.staleness = staleness;
    EXPECT_EQ(pace_bound(task).seconds, seconds) << staleness;
  }
  task.room.assign(4, 2);
  EXPECT_EQ(pace_bound(task).seconds, 4.5);
}

}  // namespace
}  // namespace pipewright
