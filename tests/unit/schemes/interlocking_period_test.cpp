// SPDX-License-Identifier: Apache-2.0
// In the steady state an N-wise pipeline takes N·(f+b) per mini-batch, whatever its length: a
// forward is f = 1 slot, a backward b = 2. Relays and heads fit into idle slots; only stages that
// learn from their own heads (N = 1) have none and pay the head's slot.
#include <gtest/gtest.h>

#include "core/schedule/slots.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr int kPeriodMiniBatches = 120;
constexpr int kMeasured = 50;

/// Slots per mini-batch of each stage, late in a long schedule.
std::vector<double> periods(const std::string& options, int stages) {
  const Schedule schedule =
      schedule_of("interlocking", options, {.stages = stages, .minibatches = kPeriodMiniBatches});
  const SlotTimes times = slot_times(schedule);
  std::vector<double> all;
  for (const std::vector<int>& start : times.start) {
    const std::size_t actions = start.size() / kPeriodMiniBatches;
    const int slots = start[(kPeriodMiniBatches - 1) * actions] -
                      start[(kPeriodMiniBatches - 1 - kMeasured) * actions];
    all.push_back(static_cast<double>(slots) / kMeasured);
  }
  return all;
}

std::vector<double> all_stages(int stages, double period) {
  return std::vector<double>(static_cast<std::size_t>(stages), period);
}

TEST(InterlockingPeriod, IsTheWidthTimesForwardAndBackward) {
  for (int stages = 2; stages <= 8; ++stages)
    for (int width = 2; width <= stages; ++width)
      for (const char* unused_heads : {"true", "false"})
        EXPECT_EQ(
            periods(concat("{width: ", width, ", train_unused_heads: ", unused_heads, "}"), stages),
            all_stages(stages, width * 3))
            << width << "-wise, " << stages << " stages";
}

TEST(InterlockingPeriod, OfLocalLearningIsForwardHeadAndBackward) {
  for (int stages = 2; stages <= 8; ++stages)
    EXPECT_EQ(periods("{width: 1}", stages), all_stages(stages, 4));
  EXPECT_EQ(periods("{width: 1}", 1), all_stages(1, 3));
}

TEST(InterlockingPeriod, OfAllLossesOfAWindowIsNotEndToEnd) {  // sum: unlocked too
  for (int stages = 4; stages <= 6; ++stages)
    for (const double period : periods("{width: 2, combine: sum}", stages))
      EXPECT_LT(period, stages * 3);
}

}  // namespace
}  // namespace pipewright
