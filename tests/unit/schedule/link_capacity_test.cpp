// SPDX-License-Identifier: Apache-2.0
// Links that hold only so many messages: a sender waits for room, and what would wait for ever is
// refused before it runs.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "tests/unit/schedule/refusal.h"

namespace pipewright {
namespace {

Schedule two_stages_per_worker(int capacity, int microbatches) {
  return pipeline_schedule({.stages = 4,
                            .microbatches = microbatches,
                            .placement = {0, 1, 0, 1},
                            .link_capacity = capacity},
                           {.fill_drain = true});
}

/// Stage 0 sends 0, 1, …; stage 1 wants the last first.
Schedule last_wanted_first(int capacity, int microbatches) {
  Schedule schedule = evaluation_schedule({.stages = 2, .microbatches = microbatches});
  schedule.shape.link_capacity = capacity;
  std::reverse(schedule.workers[1].begin(), schedule.workers[1].end());
  return schedule;
}

TEST(LinkCapacity, OneMessageIsEnoughForOneForwardOneBackward) {
  for (const bool flush : {true, false})
    for (int stages = 1; stages <= 6; ++stages)
      EXPECT_EQ(refusal(pipeline_schedule(
                    {.stages = stages, .microbatches = 5, .minibatches = 3, .link_capacity = 1},
                    {.flush = flush})),
                "accepted");
}

TEST(LinkCapacity, OneMessageIsEnoughForGPipeWithAWorkerPerStage) {
  EXPECT_EQ(refusal(pipeline_schedule({.stages = 4, .microbatches = 6, .link_capacity = 1},
                                      {.fill_drain = true})),
            "accepted");
}

TEST(LinkCapacity, FillAndDrainOfTwoStagesPerWorkerNeedsMore) {
  const std::string text = refusal(two_stages_per_worker(1, 4));
  EXPECT_NE(text.find("can never start"), std::string::npos) << text;
  EXPECT_NE(text.find("its link to worker 1 already holds 1 message"), std::string::npos) << text;
  EXPECT_EQ(refusal(two_stages_per_worker(4, 4)), "accepted");
  EXPECT_EQ(refusal(two_stages_per_worker(0, 4)), "accepted") << "0 is unbounded";
}

TEST(LinkCapacity, IsTheNumberOfMessagesThatWait) {
  for (int microbatches = 2; microbatches <= 5; ++microbatches) {
    for (int capacity = 1; capacity < microbatches; ++capacity)
      EXPECT_NE(refusal(last_wanted_first(capacity, microbatches)).find("can never start"),
                std::string::npos);
    EXPECT_EQ(refusal(last_wanted_first(microbatches, microbatches)), "accepted");
  }
}

TEST(LinkCapacity, HoldsForGradientsToo) {
  Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 2, .link_capacity = 1}, {.fill_drain = true});
  EXPECT_EQ(refusal(schedule), "accepted");
  std::swap(schedule.workers[0][2], schedule.workers[0][3]);  // takes the gradients the other way
  EXPECT_NE(refusal(schedule).find("can never start"), std::string::npos);
  schedule.shape.link_capacity = 2;
  EXPECT_EQ(refusal(schedule), "accepted");
}

TEST(LinkCapacity, DoesNotCountWhatStaysOnAWorker) {
  Schedule schedule = last_wanted_first(1, 3);
  schedule.shape.placement = {0, 0};
  auto& only = schedule.workers[0];
  only.insert(only.end(), schedule.workers[1].begin(), schedule.workers[1].end());
  schedule.workers.pop_back();
  EXPECT_EQ(refusal(schedule), "accepted");
}

TEST(LinkCapacity, EachReplicaHasItsOwnLinks) {
  EXPECT_EQ(
      refusal(pipeline_schedule({.stages = 3, .replicas = 3, .microbatches = 4, .link_capacity = 1},
                                {.flush = true})),
      "accepted");
}

TEST(LinkCapacity, DoesNotStopAnEvaluationWhereStagesShareWorkers) {
  for (const int capacity : {0, 1, 2, 3})
    for (const std::vector<int>& placement :
         {std::vector<int>{0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 2, 0}, {}})
      EXPECT_NO_THROW(prove(evaluation_schedule(
          {.stages = 4, .minibatches = 12, .placement = placement, .link_capacity = capacity})))
          << capacity << " " << testing::PrintToString(placement);
}

}  // namespace
}  // namespace pipewright
