// SPDX-License-Identifier: Apache-2.0
// Placements: every one is there once, the best is found, and what is proved holds for all of them.
#include "core/synthesis/placement_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/schedule/prove.h"
#include "tests/unit/synthesis/search_cases.h"

namespace pipewright {
namespace {

const SynthesisSettings kFew{.tries = 2000000, .exact_steps = 2000000};

TEST(Placements, AreThereOnceEach) {
  // Stirling numbers of the second kind count the ways to put 6 stages into 3 groups, and so on.
  EXPECT_EQ(placements_of(4, 2, 100).size(), 7U);
  EXPECT_EQ(placements_of(6, 3, 1000).size(), 90U);
  EXPECT_EQ(placements_of(8, 4, 2000).size(), 1701U);
  EXPECT_EQ(placements_of(5, 5, 10).size(), 1U);
  EXPECT_TRUE(placements_of(8, 4, 1700).empty()) << "more than that";
  const auto all = placements_of(6, 3, 1000);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
  for (const auto& placement : all)
    EXPECT_EQ(std::set(placement.begin(), placement.end()), (std::set{0, 1, 2}));
}

void expect_as_fast_as_the_best(std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t seed = from; seed < to; ++seed) {
    const std::vector<StageCost> costs = random_costs(5, seed);
    const Hardware hardware = ideal_hardware(2);
    const PipelineShape shape = straight(5, 3, 24);
    const PlacedSchedule placed = search_placements(shape, 2, costs, hardware, {}, kFew);
    EXPECT_EQ(placed.found.proved->schedule.shape.placement, placed.placement);
    EXPECT_EQ(placed.placements, 15);
    double fastest = kUnlimited;
    for (const auto& placement : placements_of(5, 2, 100)) {
      PipelineShape alone = shape;
      alone.placement = placement;
      const SearchedSchedule found = search_schedule(
          alone, costs, hardware, {}, {.tries = kFew.tries / 1000, .exact_steps = 2000});
      fastest = std::min(fastest, found.pace.seconds);
      EXPECT_GE(found.pace.seconds, placed.found.bound.seconds * (1 - kSumRounding)) << seed;
    }
    EXPECT_LE(placed.found.pace.seconds, fastest * (1 + kSumRounding)) << seed;
    EXPECT_GE(placed.found.gap(), 0);
  }
}

TEST(PlacementSearch, IsAsFastAsTheBestOfAllPlacementsSearchedAlone) {
  expect_as_fast_as_the_best(2, 6);
}

TEST(PlacementSearch, IsAsFastAsTheBestOfAllPlacementsWithOtherCosts) {
  expect_as_fast_as_the_best(0, 2);
}

TEST(PlacementSearch, FindsThatUnequalStagesAreSharedUnequally) {
  // Stages of 6, 1, 1, 1, 1 and 2 s on two workers: only 6 | 1 1 1 1 2 is fair. A loop gives 8 and
  // 4, a V of the stages in turn other sums.
  std::vector<StageCost> costs;
  for (const double seconds : {6.0, 1.0, 1.0, 1.0, 1.0, 2.0})
    costs.push_back(alike(1, seconds / 3, seconds / 3, seconds / 3).front());
  const PlacedSchedule placed =
      search_placements(straight(6, 8, 24), 2, costs, ideal_hardware(2), {}, kFew);
  EXPECT_EQ(placed.placement, (std::vector{0, 1, 1, 1, 1, 1}));
  EXPECT_LT(placed.searched, placed.placements) << "bounds show that most cannot be faster";
}

TEST(PlacementSearch, KnowsFastDevicesFromSlowOnes) {
  // The device of worker 1 is twice as fast, so it takes two of three equal stages.
  Hardware hardware = ideal_hardware(2);
  hardware.devices[1].speed = 2;
  const PlacedSchedule placed =
      search_placements(straight(3, 8, 24), 2, alike(3, 1, 1, 1), hardware, {}, kFew);
  EXPECT_EQ(std::ranges::count(placed.placement, 1), 2);
  EXPECT_EQ(placed.placements, 6) << "three placements with two numberings each";
}

TEST(PlacementSearch, ImprovesPlacementsOfWhichThereAreTooMany) {
  const std::vector<StageCost> costs = random_costs(16, 3);
  const PipelineShape shape = straight(16, 8, 8);
  const SynthesisSettings short_search{.tries = 20000, .exact_steps = 2000};
  const PlacedSchedule placed =
      search_placements(shape, 4, costs, ideal_hardware(4), {}, short_search);
  EXPECT_EQ(placed.placements, 0);
  EXPECT_GT(placed.searched, 3);
  EXPECT_GE(placed.found.pace.seconds, placed.found.bound.seconds);
  PipelineShape loop = shape;
  for (int stage = 0; stage < 16; ++stage) loop.placement.push_back(stage % 4);
  EXPECT_LT(placed.found.pace.seconds,
            search_schedule(loop, costs, ideal_hardware(4), {}, short_search).pace.seconds);
}

TEST(PlacementSearch, LeavesAPlacementInWhichAllButOneMicroBatchAtATimeStops) {
  // In program order of a V, and not of a loop.
  Hardware hardware = ideal_hardware(2);
  hardware.receives = Receives::Rendezvous;
  const PipelineShape shape = straight(4, 8, 24);
  PipelineShape folded = shape;
  folded.placement = {0, 1, 1, 0};
  const ScheduleLimits limits{.live = 3};
  const SearchedSchedule of_folded = search_schedule(folded, alike(4, 1, 1, 1), hardware, limits,
                                                     {.tries = 2000, .exact_steps = 2000});
  EXPECT_EQ(of_folded.from, "model_parallel");
  const PlacedSchedule placed =
      search_placements(shape, 2, alike(4, 1, 1, 1), hardware, limits, kFew);
  EXPECT_NE(placed.placement, folded.placement);
  EXPECT_LT(placed.found.pace.seconds, of_folded.pace.seconds);
  EXPECT_NO_THROW(simulate(*placed.found.proved, alike(4, 1, 1, 1), hardware));
}

TEST(PlacementSearch, RefusesMoreWorkersThanStages) {
  EXPECT_THROW(search_placements(straight(2, 1, 24), 3, alike(2, 1, 1, 1), ideal_hardware(3), {}),
               Error);
}

TEST(PlacementSearch, SaysWhyNoPlacementKeepsToTheLimits) {
  std::vector<StageCost> costs = alike(3, 1, 1, 1);
  for (StageCost& cost : costs) cost.parameter_bytes = 100;
  EXPECT_THROW(search_placements(straight(3, 2, 24), 2, costs, ideal_hardware(2),
                                 {.memory = {50, 50}}, kFew),
               Error);
}

}  // namespace
}  // namespace pipewright
