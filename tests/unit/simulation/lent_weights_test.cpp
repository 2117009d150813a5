// SPDX-License-Identifier: Apache-2.0
// What weights that one stage lends to another cost in seconds and bytes, counted on paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

/// A forward takes 1 s, a backward 2 s, activations nothing; a link carries 1 byte/s.
Simulation simulated(const std::string& scheme, int microbatches, int minibatches,
                     std::int64_t bytes, Receives receives = Receives::AnyOrder) {
  PipelineShape shape{.stages = 2, .microbatches = microbatches, .minibatches = minibatches};
  if (bytes > 0) shape.skips = {{.from = 0, .to = 1, .lent_bytes = bytes}};
  Hardware hardware = ideal_hardware(2);
  hardware.within = {.bandwidth = 1};
  hardware.receives = receives;
  return simulate(prove(schedule_of(scheme, "{}", shape)), equal_costs(2), hardware);
}

/// 0F 0–1, the weights 0–3, 1F 3–4, 1B 4–6, their gradient 6–9, 0B 6–8, which then waits; and once
/// more.
TEST(SimulatedLoan, WaitsForWhatCrosses) {
  EXPECT_EQ(simulated("model_parallel", 1, 2, 0).makespan, 2 * 6);
  for (const Receives receives : {Receives::AnyOrder, Receives::ProgramOrder}) {
    const Simulation lending = simulated("model_parallel", 1, 2, 3, receives);
    EXPECT_EQ(lending.makespan, 2 * 9);
    ASSERT_EQ(lending.links.size(), 2U);
    for (const LinkReport& link : lending.links) {
      EXPECT_EQ(link.traffic.bytes, 2 * 3);
      EXPECT_EQ(link.traffic.messages, 2 * 2) << "the activations', too";
    }
  }
}

/// The weights cross with the first of two micro-batches, the gradient with the last: 0F 0–2, 1F0
/// 3–4, 1B0 4–6, 1F1 6–7, 1B1 7–9, the gradient 9–12; 0B0 6–8, 0B1 9–11.
TEST(SimulatedLoan, CrossesOnceForAllMicroBatches) {
  EXPECT_EQ(simulated("one_f_one_b", 2, 1, 3).makespan, 12);
  EXPECT_EQ(simulated("one_f_one_b", 2, 1, 0).makespan, 9);
}

/// The weights cross beside the owner's forward of 1 s, the gradient beside its backward of 2 s.
TEST(SimulatedLoan, HidesBehindThePassesOfItsOwner) {
  constexpr int kMiniBatches = 9;
  const auto longer = [](const char* scheme, std::int64_t bytes) {
    return simulated(scheme, 1, kMiniBatches, bytes).makespan -
           simulated(scheme, 1, kMiniBatches, 0).makespan;
  };
  EXPECT_EQ(longer("pipedream", 1), 0);
  EXPECT_EQ(longer("model_parallel", 1), 0);
  EXPECT_EQ(longer("model_parallel", 2), kMiniBatches);
}

TEST(SimulatedLoan, IsRefusedWhereMessagesWaitForTheirReceives) {
  EXPECT_THROW(simulated("gpipe", 2, 1, 3, Receives::InOrder), Error);
}

/// 0F0 0–1, 1F0 1–2, 1B0 2–4, its gradient 4–7, 0F1 1–2, 0B0 4–6, and 0U0 at 7: a's next forward
/// begins then. What comes to stage 1 is hidden by the passes in between.
TEST(SimulatedCopies, WaitForEachOthersGradients) {
  const auto copying = [](int minibatches, std::int64_t bytes, Receives receives) {
    PipelineShape shape{.stages = 2, .minibatches = minibatches};
    if (bytes > 0) shape.tied = {{.first = 0, .second = 1, .numbers = 1, .bytes = bytes}};
    Hardware hardware = ideal_hardware(2);
    hardware.within = {.bandwidth = 1};
    hardware.receives = receives;
    return simulate(prove(schedule_of("pipedream", "{}", shape)), equal_costs(2), hardware);
  };
  EXPECT_EQ(copying(1, 0, Receives::AnyOrder).makespan, 6);
  for (const Receives receives : {Receives::AnyOrder, Receives::ProgramOrder}) {
    EXPECT_EQ(copying(1, 1, receives).makespan, 6) << "beside the backward of 2 s";
    EXPECT_EQ(copying(1, 3, receives).makespan, 7);
    const Simulation five = copying(5, 3, receives);
    std::map<std::pair<int, int>, std::int64_t> bytes;
    for (const LinkReport& link : five.links) bytes[{link.from, link.to}] = link.traffic.bytes;
    EXPECT_EQ((bytes[{1, 0}]), 5 * 3);
    EXPECT_EQ((bytes[{0, 1}]), 3 * 3) << "none for the last two, which no update can apply";
  }
  EXPECT_THROW(copying(1, 3, Receives::InOrder), Error);
}

/// One copy at the borrower, and the sum of gradients at either end.
TEST(SimulatedLoan, TakesMemory) {
  const auto peak = [](std::int64_t bytes, std::size_t worker) {
    return simulated("gpipe", 2, 2, bytes).workers[worker].peak.total();
  };
  EXPECT_EQ(peak(300, 1) - peak(0, 1), 600);
  EXPECT_EQ(peak(300, 0) - peak(0, 0), 300);
}

}  // namespace
}  // namespace pipewright
