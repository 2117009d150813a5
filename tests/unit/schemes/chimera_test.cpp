// SPDX-License-Identifier: Apache-2.0
// Chimera's two opposite replicas: where stages are, and the idle time and the activations that the
// paper gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>

#include "core/base/as_size.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

PipelineShape pair_of(int stages, int microbatches) {
  return {.stages = stages, .replicas = 2, .microbatches = microbatches};
}

/// A forward takes 1, and so does a backward unless another time is given.
Simulation chimera_of(int stages, int microbatches, double backward = 1) {
  const Schedule schedule = schedule_of("chimera", "{}", pair_of(stages, microbatches));
  prove(schedule);
  std::vector<StageCost> costs(as_size(stages));
  for (StageCost& stage : costs)
    stage = {.forward = 1, .backward = backward, .activation_bytes = 1};
  return simulate(prove(schedule), costs, ideal_hardware(stages));
}

std::string refusal(const PipelineShape& shape) {
  try {
    schedule_of("chimera", "{}", shape);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return {};
}

TEST(Chimera, PlacesReplicasInOppositeDirections) {
  const auto scheme = SchemeReading("chimera", "{}").scheme->replica_placement(4, 4);
  EXPECT_EQ(scheme, (std::vector<std::vector<int>>{
                        {0, 1, 2, 3}, {3, 2, 1, 0}, {4, 5, 6, 7}, {7, 6, 5, 4}}));
  const Schedule schedule = schedule_of("chimera", "{}", {.stages = 4, .replicas = 4});
  EXPECT_EQ(schedule.shape.replica_placement, scheme);
  EXPECT_EQ(schedule.workers.size(), 8U);
}

TEST(Chimera, RefusesShapesInWhichAStageWouldMeetItself) {
  EXPECT_EQ(refusal({.stages = 4}),
            "pipeline.replicas is 1; chimera needs an even number, as two replicas share their "
            "workers in opposite directions");
  EXPECT_EQ(refusal({.stages = 3, .replicas = 2}),
            "pipeline.stages is 3; chimera needs an even number, as otherwise both replicas of the "
            "middle stage would be on one worker");
  EXPECT_EQ(refusal({.stages = 2, .replicas = 2, .placement = {0, 1}}),
            "pipeline.placement is [0, 1]; chimera places its replicas in opposite directions, so "
            "leave it out");
}

/// D−2 slots of passes that are equally long, against 2(D−1) of 1F1B (Li and Hoefler, Table 2).
TEST(Chimera, IdlesForTwoPassesLessThanItHasStages) {
  for (const int d : {2, 4, 6, 8, 10})
    for (const int halves : {1, 2, 3, 8}) {
      const int m = halves * d / 2;
      const Simulation simulation = chimera_of(d, m);
      EXPECT_EQ(simulation.makespan, 4 * m + d - 2) << d << " stages, " << m << " micro-batches";
      for (const WorkerReport& worker : simulation.workers) EXPECT_EQ(worker.idle, d - 2);
    }
}

/// From D/2+1 on the first worker to D in the middle, of the two replicas together (Table 2).
TEST(Chimera, HoldsTheActivationsOfThePaper) {
  for (const int d : {2, 4, 6, 8})
    for (const int halves : {1, 2, 8}) {
      const Simulation simulation = chimera_of(d, halves * d / 2);
      for (int w = 0; w < d; ++w)
        EXPECT_EQ(simulation.workers[as_size(w)].peak.activations,
                  std::min(d / 2, d - w) + std::min(d / 2, w + 1))
            << d << " stages, worker " << w;
    }
}

/// With one basic unit, D/2 micro-batches of each replica.
TEST(Chimera, IdlesLessThanOneForwardOneBackwardWhereBackwardsTakeTwiceAsLong) {
  for (const int d : {4, 6, 8}) {
    const double plain = 3.0 * (d - 1);
    EXPECT_LT(chimera_of(d, d / 2, 2).makespan - 3.0 * d, plain) << d;
  }
}

/// A stand-in for an exhaustive search: no random order of ready passes is shorter, and some are
/// longer, so that the bubble is a property of the order.
TEST(Chimera, IsAsShortAsAnyOrderOfReadyPasses) {
  constexpr int d = 4, m = 2;
  std::mt19937 random(3);
  int longest = 0, shortest = 1000;
  for (int round = 0; round < 3000; ++round) {
    // [replica][stage]: passes done; when each was made.
    int forwards[2][d] = {}, backwards[2][d] = {}, f_at[2][d][m] = {}, b_at[2][d][m] = {};
    int left = 2 * d * m * 2, slot = 0;
    for (; left > 0; ++slot)
      for (int worker = 0; worker < d; ++worker) {
        std::vector<std::pair<int, bool>> ready;  // replica, whether it is a forward
        for (const int r : {0, 1}) {
          const int k = r == 0 ? worker : d - 1 - worker, f = forwards[r][k], b = backwards[r][k];
          if (f < m && (k == 0 || (forwards[r][k - 1] > f && f_at[r][k - 1][f] < slot)))
            ready.emplace_back(r, true);
          const bool back = k == d - 1 ? f > b && f_at[r][k][b] < slot
                                       : backwards[r][k + 1] > b && b_at[r][k + 1][b] < slot;
          if (b < m && back) ready.emplace_back(r, false);
        }
        if (ready.empty()) continue;
        const auto [r, forward] = ready[random() % ready.size()];
        const int k = r == 0 ? worker : d - 1 - worker;
        int& done = forward ? forwards[r][k] : backwards[r][k];
        (forward ? f_at : b_at)[r][k][done++] = slot;
        --left;
      }
    longest = std::max(longest, slot);
    shortest = std::min(shortest, slot);
  }
  EXPECT_EQ(shortest, 4 * m + d - 2);
  EXPECT_GT(longest, shortest);
  EXPECT_EQ(chimera_of(d, m).makespan, shortest);
}

}  // namespace
}  // namespace pipewright
