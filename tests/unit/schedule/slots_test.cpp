// SPDX-License-Identifier: Apache-2.0
// When each action starts. The grids are those of the papers.
#include "core/schedule/slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/schedule/builders.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

/// The papers' grid: a forward is a digit, a backward a letter in each of its slots.
std::string papers_grid(const Schedule& schedule) {
  const SlotTimes times = slot_times(schedule);
  std::string grid;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    std::string line(as_size(times.makespan), '.');
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Action& action = schedule.workers[worker][i];
      const int number = action.minibatch + action.microbatch;
      const char first = action.kind == ActionKind::Forward ? '1' : 'A';
      for (int slot = 0; slot < slots_of(action.kind); ++slot)
        line[as_size(times.start[worker][i] + slot)] = static_cast<char>(first + number);
    }
    grid += concat("S", worker, " ", line, "\n");
  }
  return grid;
}

TEST(SlotTimes, ModelParallelHasOneMiniBatchInFlight) {
  EXPECT_EQ(
      papers_grid(pipeline_schedule({.stages = 3, .minibatches = 6}, {.one_at_a_time = true})),
      "S0 1......AA2......BB3......CC4......DD5......EE6......FF\n"
      "S1 .1...AA...2...BB...3...CC...4...DD...5...EE...6...FF..\n"
      "S2 ..1AA......2BB......3CC......4DD......5EE......6FF....\n");
}

TEST(SlotTimes, GPipeFillsAndDrains) {
  EXPECT_EQ(papers_grid(pipeline_schedule({.stages = 3, .microbatches = 6}, {.fill_drain = true})),
            "S0 123456......FFEEDDCCBBAA\n"
            "S1 .123456...FFEEDDCCBBAA..\n"
            "S2 ..123456FFEEDDCCBBAA....\n");
}

/// (micro-batch, stage) of the forwards that run together, as torchgpipe's clock cycles list them.
using Cycle = std::vector<std::pair<int, int>>;
std::vector<Cycle> forward_cycles(int microbatches, int stages) {
  const Schedule schedule =
      pipeline_schedule({.stages = stages, .microbatches = microbatches}, {.fill_drain = true});
  const SlotTimes times = slot_times(schedule);
  std::vector<Cycle> cycles(as_size(microbatches + stages - 1));
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      if (action.kind == ActionKind::Forward)
        cycles.at(as_size(times.start[w][i])).emplace_back(action.microbatch, action.stage);
    }
  return cycles;
}

TEST(SlotTimes, GPipesForwardsRunInTorchgpipesClockCycles) {
  EXPECT_EQ(forward_cycles(1, 1), (std::vector<Cycle>{{{0, 0}}}));
  EXPECT_EQ(forward_cycles(1, 3), (std::vector<Cycle>{{{0, 0}}, {{0, 1}}, {{0, 2}}}));
  EXPECT_EQ(forward_cycles(3, 1), (std::vector<Cycle>{{{0, 0}}, {{1, 0}}, {{2, 0}}}));
  EXPECT_EQ(forward_cycles(3, 3),
            (std::vector<Cycle>{
                {{0, 0}}, {{1, 0}, {0, 1}}, {{2, 0}, {1, 1}, {0, 2}}, {{2, 1}, {1, 2}}, {{2, 2}}}));
  EXPECT_EQ(forward_cycles(4, 2),
            (std::vector<Cycle>{
                {{0, 0}}, {{1, 0}, {0, 1}}, {{2, 0}, {1, 1}}, {{3, 0}, {2, 1}}, {{3, 1}}}));
}

constexpr const char* kOneForwardOneBackward =
    "S0 123....AA4BB5CC6DD.EE.FF\n"
    "S1 .12..AA3BB4CC5DD6EE.FF..\n"
    "S2 ..1AA2BB3CC4DD5EE6FF....\n";

TEST(SlotTimes, OneForwardOneBackward) {
  EXPECT_EQ(papers_grid(pipedream(3, 6)), kOneForwardOneBackward);
}

TEST(SlotTimes, FlushDoesNotChangeTheGridOfOneMiniBatch) {
  EXPECT_EQ(papers_grid(pipeline_schedule({.stages = 3, .microbatches = 6}, {.flush = true})),
            kOneForwardOneBackward);
}

TEST(SlotTimes, ReduceWaitsForTheLastReplica) {
  Schedule schedule = pipeline_schedule({.stages = 1, .replicas = 2, .minibatches = 2}, {});
  // Replica 1 computes the forward of mini-batch 1 before it reduces mini-batch 0.
  std::vector<Action>& late = schedule.workers[1];
  ASSERT_EQ(late[2].kind, ActionKind::Reduce);
  std::rotate(late.begin() + 2, late.begin() + 4, late.begin() + 5);
  const SlotTimes times = slot_times(schedule);
  EXPECT_EQ(times.start[0], (std::vector{0, 1, 4, 4, 4, 5, 7, 7}));
  EXPECT_EQ(times.start[1], (std::vector{0, 1, 3, 4, 4, 4, 7, 7}));
}

TEST(SlotTimes, ReduceThatOneReplicaNeverReachesNeverStarts) {
  Schedule schedule = pipeline_schedule({.stages = 1, .replicas = 2}, {});
  std::erase_if(schedule.workers[1],
                [](const Action& action) { return action.kind == ActionKind::Reduce; });
  EXPECT_EQ(slot_times(schedule).start[0], (std::vector{0, 1, kNeverStarts, kNeverStarts}));
}

TEST(SlotTimes, HeadAndRelayTakeOneSlotAndFollowTheirInputs) {
  const Schedule schedule = pairwise();
  const SlotTimes times = slot_times(schedule);
  std::map<std::tuple<ActionKind, int>, int> starts;  // of mini-batch 0
  for (std::size_t worker = 0; worker < 3; ++worker)
    for (std::size_t i = 0; i < schedule.workers[worker].size() / 2; ++i)
      starts[{schedule.workers[worker][i].kind, static_cast<int>(worker)}] = times.start[worker][i];
  EXPECT_EQ((starts[{ActionKind::Forward, 1}]), 1);
  EXPECT_EQ((starts[{ActionKind::Head, 1}]), 2);
  EXPECT_EQ((starts[{ActionKind::BackwardInput, 1}]), 3);
  EXPECT_EQ((starts[{ActionKind::Backward, 0}]), 4);  // of loss 1, relayed by stage 1
  EXPECT_EQ((starts[{ActionKind::Backward, 2}]), 3);
  EXPECT_EQ((starts[{ActionKind::Backward, 1}]), 5);
}

TEST(SlotTimes, WhatWaitsForAMissingPassNeverStarts) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[1].erase(schedule.workers[1].begin() + 1);  // the backward of stage 1
  const SlotTimes times = slot_times(schedule);
  EXPECT_EQ(times.start[0], (std::vector{0, kNeverStarts, kNeverStarts}));
  EXPECT_EQ(times.makespan, 2);
}

TEST(SlotTimes, ActionsOutsideTheShapeNeverStart) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[0][1].minibatch = 7;
  EXPECT_EQ(slot_times(schedule).start[0], (std::vector{0, kNeverStarts, kNeverStarts}));
  schedule.shape.minibatches = 0;
  EXPECT_EQ(slot_times(schedule).makespan, 0);
}

TEST(SlotTimes, ABackwardOfALossBeforeItsStageNeverStarts) {
  Schedule schedule = pipedream(2, 1);
  schedule.workers[1][1].loss = 0;
  EXPECT_EQ(slot_times(schedule).start[1], (std::vector{1, kNeverStarts, kNeverStarts}));
}

/// Worker 0 has stages 0 and 3 of four on a V, and runs the forward of micro-batch 1 at stage 0
/// beside the backward of micro-batch 0 at stage 3.
TEST(SlotTimes, OfAFusedPairAreFromWhenBothInputsAreThere) {
  const auto step = [](ActionKind kind, int stage, int microbatch, bool with_next = false) {
    return PassStep{.kind = kind, .stage = stage, .microbatch = microbatch, .with_next = with_next};
  };
  constexpr auto kF = ActionKind::Forward, kB = ActionKind::Backward;
  const PipelineShape shape{.stages = 4, .microbatches = 2, .placement = {0, 1, 1, 0}};
  const auto times_with = [&](bool pair) {
    return slot_times(schedule_of_workers(
        shape, {{step(kF, 0, 0), step(kF, 3, 0), step(kF, 0, 1, pair), step(kB, 3, 0),
                 step(kF, 3, 1), step(kB, 3, 1), step(kB, 0, 0), step(kB, 0, 1)},
                {step(kF, 1, 0), step(kF, 2, 0), step(kF, 1, 1), step(kF, 2, 1), step(kB, 2, 0),
                 step(kB, 1, 0), step(kB, 2, 1), step(kB, 1, 1)}}));
  };
  // In turn, worker 1 has the forward of stage 0 after slot 4; in a pair when both have ended.
  EXPECT_EQ(times_with(false).start[0][2], 4);
  EXPECT_EQ(times_with(false).start[0][3], 5);
  EXPECT_EQ(times_with(false).start[1][2], 5);
  EXPECT_EQ(times_with(true).start[0][2], 4);
  EXPECT_EQ(times_with(true).start[0][3], 5);
  EXPECT_EQ(times_with(true).start[1][2], 7);
}

}  // namespace
}  // namespace pipewright
