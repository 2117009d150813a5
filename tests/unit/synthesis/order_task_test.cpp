// SPDX-License-Identifier: Apache-2.0
// Which orders are accepted, and that they become the schedules that they say.
#include "core/synthesis/order_task.h"

#include <gtest/gtest.h>

#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/synthesis/search_cases.h"

namespace pipewright {
namespace {

/// "FBW" as passes of stage 0.
std::vector<Turn> turns(const std::string& letters) {
  std::vector<Turn> all;
  for (const char letter : letters)
    all.push_back({0, letter == 'F'   ? Part::Forward
                      : letter == 'B' ? Part::Backward
                                      : Part::Weight});
  return all;
}

TEST(OrderTask, AcceptsEachPassOnceBehindThoseThatItNeeds) {
  const OrderTask task = equal_task(1, 2, 2);
  for (const char* good : {"FBWFBW", "FFBBWW", "FFBWBW", "FBFWBW"})
    EXPECT_TRUE(fits(task, {turns(good)})) << good;
  for (const char* bad : {"", "FBWFB", "FBWFBWW", "BFWFBW", "FWBFBW", "FBWFBWFBW", "FFFBBW"})
    EXPECT_FALSE(fits(task, {turns(bad)})) << bad;
}

TEST(OrderTask, HoldsAMicrobatchFromItsForwardToItsWeightHalf) {
  const OrderTask task = equal_task(1, 2, 1);
  EXPECT_TRUE(fits(task, {turns("FBWFBW")}));
  EXPECT_FALSE(fits(task, {turns("FBFWBW")}));
}

TEST(OrderTask, CountsTheUpdatesThatAForwardDoesNotWaitFor) {
  OrderTask task = equal_task(1, 1, kUnlimited);
  task.minibatches = 3;
  EXPECT_TRUE(fits(task, {turns("FBWFBWFBW")}));
  EXPECT_FALSE(fits(task, {turns("FFBWFBWBW")}));
  task.staleness = 1;
  EXPECT_TRUE(fits(task, {turns("FFBWFBWBW")}));
  EXPECT_FALSE(fits(task, {turns("FFFBWBWBW")}));
  task.staleness = 2;
  EXPECT_TRUE(fits(task, {turns("FFFBWBWBW")}));
}

TEST(OrderTask, MakesASchedulesOrdersAndTheScheduleAgain) {
  for (const char* name : {"one_f_one_b", "zb_h1", "zb_h2"}) {
    const PipelineShape shape = straight(4, 8, 2);
    const Schedule schedule = schedule_of(name, "{}", shape);
    const bool split = name[0] == 'z';
    const OrderTask task = order_task(shape, alike(4, 1, 1, 1), ideal_hardware(4), split);
    const Orders orders = orders_of(schedule, split);
    EXPECT_TRUE(fits(task, orders)) << name;
    EXPECT_EQ(schedule_of(task, shape, orders).workers, schedule.workers) << name;
    EXPECT_TRUE(orders_of(schedule, !split).empty()) << name;
  }
}

TEST(OrderTask, HasNoOrdersOfSchedulesThatOverlapMinibatchesOrPredict) {
  for (const char* name : {"pipedream", "pipedream_2bw", "spectrain", "interlocking"})
    EXPECT_TRUE(orders_of(schedule_of(name, "{}", straight(4, 4, 6)), false).empty()) << name;
}

TEST(OrderTask, OverlapsMinibatchesAsPipeDreamDoes) {
  OrderTask task = equal_task(2, 1, kUnlimited);
  task.split = false;
  task.minibatches = 3;
  task.staleness = 1;
  const PipelineShape shape = straight(2, 1, 3);
  const Orders orders = orders_of(schedule_of("model_parallel", "{}", straight(2, 3)), false);
  ASSERT_TRUE(fits(task, orders));
  EXPECT_NO_THROW(prove(schedule_of(task, shape, orders)));
  const auto one = [](Part part) { return Turn{0, part}; };
  const std::vector<Turn> first{one(Part::Forward), one(Part::Forward),  one(Part::Backward),
                                one(Part::Forward), one(Part::Backward), one(Part::Backward)};
  const Schedule schedule = schedule_of(task, shape, {first, orders[1]});
  EXPECT_EQ(schedule.workers, schedule_of("pipedream", "{}", shape).workers);
}

}  // namespace
}  // namespace pipewright
