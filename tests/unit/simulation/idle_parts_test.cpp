// SPDX-License-Identifier: Apache-2.0
// Why workers are idle, beside bubbles counted by hand.
#include "core/simulation/idle_parts.h"

#include <gtest/gtest.h>

#include "core/cost/cost_table.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr double kQuotients = 1e-12;  // of sums and quotients of a few small numbers

/// GPipe's schedule of one mini-batch.
Schedule filled(int stages, int microbatches) {
  return pipeline_schedule({.stages = stages, .microbatches = microbatches}, {.fill_drain = true});
}

IdleParts parts(const Schedule& schedule, const std::vector<StageCost>& costs,
                const Hardware& hardware) {
  const Simulation simulation = simulate(prove(schedule), costs, hardware);
  const IdleParts idle = idle_parts(prove(schedule), costs, hardware, simulation);
  EXPECT_NEAR(idle.schedule + idle.stages + idle.transfers, simulation.bubble, kQuotients);
  return idle;
}

TEST(IdleParts, OfEqualStagesAreTheTextbookBubble) {
  const IdleParts idle = parts(filled(4, 8), equal_costs(4), ideal_hardware(4));
  EXPECT_NEAR(idle.schedule, 3 / 11.0, kQuotients);
  EXPECT_NEAR(idle.stages, 0, kQuotients);
  EXPECT_NEAR(idle.transfers, 0, kQuotients);
}

// With the mean of both stages, 2 s and 4 s, a mini-batch takes 18 s, in which each computes 12 and
// is idle for 6. As they are it takes 1 + 2·3 + 2·6 + 2 = 21 s, in which they compute 6 and 18 and
// are idle for 15 and 3, that is for 6 s more.
TEST(IdleParts, TellUnevenStagesFromTheSchedule) {
  const std::vector<StageCost> costs{{.forward = 1, .backward = 2}, {.forward = 3, .backward = 6}};
  const IdleParts idle = parts(filled(2, 2), costs, ideal_hardware(2));
  EXPECT_NEAR(idle.schedule, 12 / 42.0, kQuotients);
  EXPECT_NEAR(idle.stages, 6 / 42.0, kQuotients);
  EXPECT_NEAR(idle.transfers, 0, kQuotients);
}

// With two devices of the faster kind a mini-batch takes 9 s, in which each computes 6 and idles 3.
TEST(IdleParts, CountUnequalDevicesAsUnevenStages) {
  Hardware hardware = ideal_hardware(2);
  hardware.devices[1].slowdown = 3;
  const IdleParts idle = parts(filled(2, 2), equal_costs(2), hardware);
  EXPECT_NEAR(idle.stages, (18 - 6) / 42.0, kQuotients);
}

// 1 + 1 + 2 + 2 s of computing in two workers, which idle for 6 s; two messages of m s add 4 m.
TEST(IdleParts, TellTransfersFromBoth) {
  for (const double m : {1.0, 1000.0}) {
    Hardware hardware = ideal_hardware(2);
    hardware.within.latency = m;
    const IdleParts idle = parts(filled(2, 1), equal_costs(2), hardware);
    const double all = 12 + 4 * m;
    EXPECT_NEAR(idle.schedule, 6 / all, kQuotients);
    EXPECT_NEAR(idle.stages, 0, kQuotients);
    EXPECT_NEAR(idle.transfers, 4 * m / all, kQuotients);
  }
}

}  // namespace
}  // namespace pipewright
