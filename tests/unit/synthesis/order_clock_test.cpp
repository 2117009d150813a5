// SPDX-License-Identifier: Apache-2.0
// The pace of repeated orders, beside simulations of many mini-batches and formulas of papers.
#include "core/synthesis/order_clock.h"

#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/simulation/simulate.h"
#include "core/synthesis/list_orders.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/synthesis/search_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

TEST(OrderClock, HasTheSpansThatZeroBubblesPaperGives) {
  // F, B and W on 4 workers, 8 micro-batches. ZB-H1: m (F + B + W) + (p − 1)(F + B − W); ZB-H2 has
  // (p − 1)(F + B − 2W), which is 0 where they are equal.
  const PipelineShape shape = straight(4, 8, 2);
  const Orders h1 = orders_of(schedule_of("zb_h1", "{}", shape), true);
  const Orders h2 = orders_of(schedule_of("zb_h2", "{}", shape), true);
  const OrderTask equal = equal_task(4, 8, kUnlimited);
  EXPECT_EQ(OrderClock(equal).pace(h1).seconds, 8 * 3 + 3);
  EXPECT_EQ(OrderClock(equal).pace(h2).seconds, 8 * 3);
  const OrderTask uneven = equal_task(4, 8, kUnlimited, 10, 12, 8);
  EXPECT_EQ(OrderClock(uneven).pace(h1).seconds, 8 * 30 + 3 * (10 + 12 - 8));
}

TEST(OrderClock, HasThePaceThatASimulationOfManyMinibatchesSettlesAt) {
  constexpr int kStages = 4, kMicrobatches = 5, kMinibatches = 96;
  const PipelineShape shape = straight(kStages, kMicrobatches, kMinibatches);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<StageCost> costs = random_costs(kStages, seed);
    Hardware hardware = ideal_hardware(kStages);
    hardware.within.latency = seed % 3 == 0 ? 0 : 0.25;
    OrderTask task = order_task(shape, costs, hardware, seed % 2 == 0);
    for (double& room : task.room) room = 3;
    OrderClock clock(task);
    for (const ListRule& rule : list_rules(task, 1000)) {
      const auto orders = list_orders(task, rule);
      if (!orders) continue;
      const Simulation simulation =
          simulate(prove(schedule_of(task, shape, *orders)), costs, hardware, {.memory = false});
      // Of two sums of the times of a path of as many passes at most.
      const double paths = 2 * kMinibatches * kMicrobatches * kStages * 3;
      const double seconds = simulation.seconds_per_minibatch();
      EXPECT_NEAR(clock.pace(*orders).seconds, seconds,
                  simulation.makespan * 2 * tolerance::rounded64(paths))
          << seed;
    }
  }
}

TEST(OrderClock, CannotTimeOrdersThatWaitForEachOther) {
  // Stage 0 does all forwards first, stage 1 wants its second backward before its first is taken.
  const OrderTask task = equal_task(2, 2, 2);
  const Turn f0{0, Part::Forward}, b0{0, Part::Backward}, w0{0, Part::Weight};
  const Turn f1{1, Part::Forward}, b1{1, Part::Backward}, w1{1, Part::Weight};
  const std::vector<Turn> first{f0, b0, w0, f0, b0, w0}, second{f1, f1, b1, w1, b1, w1};
  ASSERT_TRUE(fits(task, Orders{first, second}));
  EXPECT_EQ(OrderClock(task).pace({first, second}).seconds, kUnlimited);
}

}  // namespace
}  // namespace pipewright
