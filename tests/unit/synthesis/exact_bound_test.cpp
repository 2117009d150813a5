// SPDX-License-Identifier: Apache-2.0
// The bound of all orders, beside optima that CP-SAT has proved and beside orders.
#include "core/synthesis/exact_bound.h"

#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/synthesis/order_clock.h"
#include "core/synthesis/synthesis.h"
#include "tests/unit/synthesis/search_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

TEST(ExactBound, ProvesTheOptimumOfLittleRoom) {
  const PaceBound bound = exact_bound(equal_task(4, 8, 2), {.below = 41});
  EXPECT_EQ(bound.seconds, 41);
}

TEST(ExactBound, IsNeverAboveThePaceOfAnOrderAndRarelyBelowTheOtherBound) {
  int tighter = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const int stages = 2 + static_cast<int>(seed % 2);
    OrderTask task = order_task(straight(stages, 4), random_costs(stages, seed),
                                ideal_hardware(stages), seed % 4 < 2);
    for (double& room : task.room) room = static_cast<double>(1 + seed % 3);
    const double pace = synthesize(task, {}, {.tries = 20000}).pace.seconds;
    const double bound = exact_bound(task, {}).seconds, other = pace_bound(task).seconds;
    EXPECT_LE(bound, pace * (1 + tolerance::rounded64(200))) << seed;  // sums of fewer passes
    EXPECT_GE(bound, 0.9 * other) << seed;
    tighter += bound > other * (1 + kSumRounding) ? 1 : 0;
  }
  EXPECT_GE(tighter, 1);
}

TEST(ExactBound, GivesUpAfterSoManySteps) {
  EXPECT_EQ(exact_bound(equal_task(8, 16, 4), {.most_steps = 1000}).seconds, 0);
}

TEST(ExactBound, IsOfPipelinesWithAWorkerForEachStage) {
  OrderTask task = equal_task(4, 2, 4);
  task.worker_of = {0, 1, 0, 1};
  task.workers = 2;
  task.room.resize(2);
  EXPECT_EQ(exact_bound(task, {}).seconds, 0);
}

}  // namespace
}  // namespace pipewright
