// SPDX-License-Identifier: Apache-2.0
// Idle times of traces written by hand, in whole seconds, and whom they are blamed on.
#include "core/traces/idle.h"

#include <gtest/gtest.h>

#include "core/cost/cost_table.h"
#include "core/schedule/builders.h"
#include "core/simulation/simulate.h"
#include "core/traces/measured_times.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// Forwards of m micro-batches through so many stages.
Schedule forwards(int stages, int microbatches) {
  return evaluation_schedule({.stages = stages, .microbatches = microbatches});
}

double part(const Idle& idle, Blame blame) {
  return idle.parts[static_cast<std::size_t>(blame)];
}

TEST(Idle, UntilTheFirstMessageIsTheOrdersAndThenTheLinks) {
  // Worker 0: [0, 2] forwards; its message arrives at 5.
  const auto idle = idle_times(prove(forwards(2, 1)), {{{0, 2}}, {{5, 7}}});
  ASSERT_EQ(idle.size(), 2u);
  EXPECT_EQ(idle[0].worker, 0) << "it has nothing left to do from 2 to 7";
  EXPECT_EQ(idle[0].length(), 5);
  EXPECT_EQ(idle[0].sender, -1);
  EXPECT_EQ(part(idle[0], Blame::Order), 5);
  EXPECT_EQ(idle[1].worker, 1);
  EXPECT_EQ(idle[1].sender, 0);
  EXPECT_EQ(idle[1].length(), 5);
  EXPECT_EQ(part(idle[1], Blame::Order), 2);
  EXPECT_EQ(part(idle[1], Blame::Link), 3);
  EXPECT_EQ(idle[1].blame(), Blame::Link);
}

TEST(Idle, IsAnsweredForInOneSentence) {
  // Two workers compute 2 of 7 s each. Of 10 s of waiting 7 are the order's and 3 the link's.
  const Schedule schedule = forwards(2, 1);
  const Spans spans{{{0, 2}}, {{5, 7}}};
  EXPECT_EQ(timeline_answer(prove(schedule), spans, false, MessagePath::HandedOver, 4),
            "In short: workers computed 29 % of their time; of the time that they waited, 70 % is "
            "to be blamed on order; the run took 1.75 times as long as planned.\n");
  EXPECT_NE(
      timeline_answer(prove(schedule), spans, true, MessagePath::HandedOver, 4).find("take turns"),
      std::string::npos);
}

/// Worker 0 computes 1, 1 and 4 s; the median is 1. Worker 1 has nothing between.
TEST(Idle, WhileASenderTakesLongerThanItsMedianIsTheStragglers) {
  const Spans spans{{{0, 1}, {1, 2}, {2, 6}}, {{1, 2}, {2, 3}, {6, 7}}};
  const auto idle = idle_times(prove(forwards(2, 3)), spans);
  ASSERT_EQ(idle.size(), 3u);
  const Idle& waits = idle[2];
  EXPECT_EQ(waits.worker, 1);
  EXPECT_EQ(waits.before, 2u);
  EXPECT_EQ(waits.length(), 3) << "from 3 to 6";
  EXPECT_EQ(part(waits, Blame::Straggler), 3) << "the third forward should have ended at 3";
  EXPECT_EQ(waits.blame(), Blame::Straggler);
}

TEST(Idle, WhileASenderEncodesIsTheCodecs) {
  const Spans spans{{{.begin = 0, .end = 6, .encoding = 4, .sending = 1}}, {{6.5, 8}}};
  const auto idle = idle_times(prove(forwards(2, 1)), spans);
  const Idle& waits = idle.back();
  EXPECT_EQ(part(waits, Blame::Order), 1) << "it computes from 0 to 1";
  EXPECT_EQ(part(waits, Blame::Codec), 4) << "and encodes from 1 to 5";
  EXPECT_EQ(part(waits, Blame::Link), 1.5) << "sends until 6, and the message arrives at 6.5";
  EXPECT_EQ(part(waits, Blame::Straggler), 0);
}

/// Worker 2 waits for worker 1, which waits for a message of worker 0 that is 4 s on its way.
TEST(Idle, OfAWaitForAWaitingWorkerIsBlamedOnWhatThatOneWaitsFor) {
  const Spans spans{{{0, 1}}, {{5, 6}}, {{6, 7}}};
  const auto idle = idle_times(prove(forwards(3, 1)), spans);
  const Idle& waits = idle.back();
  EXPECT_EQ(waits.worker, 2);
  EXPECT_EQ(waits.sender, 1);
  EXPECT_EQ(waits.length(), 6);
  EXPECT_EQ(part(waits, Blame::Link), 4) << "from 1 to 5, between workers 0 and 1";
  EXPECT_EQ(part(waits, Blame::Order), 2) << "both workers' forwards";
}

TEST(Idle, OfASenderThatHasOtherActionsFirstIsTheOrders) {
  // Worker 0 performs both forwards before worker 1's first message would be needed at 2.
  const Spans spans{{{0, 1}, {1, 2}}, {{1, 1.5}, {2, 3}}};
  const auto idle = idle_times(prove(forwards(2, 2)), spans);
  const Idle& waits = idle.back();
  EXPECT_EQ(waits.length(), 0.5);
  EXPECT_EQ(part(waits, Blame::Order), 0.5);
}

/// Worker 0 stands still from 0 to 4, as where the system lets others run.
TEST(Idle, WhileASenderRunsNothingIsOfOtherCauses) {
  const auto idle = idle_times(prove(forwards(2, 1)), {{{4, 5}}, {{5, 6}}});
  const Idle& waits = idle.back();
  EXPECT_EQ(waits.length(), 5);
  EXPECT_EQ(part(waits, Blame::Order), 1);
  EXPECT_EQ(part(waits, Blame::Other), 4);
  const MeasuredTimes times = measured_times(prove(forwards(2, 1)), {{{4, 5}}, {{5, 6}}});
  EXPECT_EQ(times.workers[0].busy, 1);
  EXPECT_EQ(times.workers[0].other, 4);
  EXPECT_EQ(times.workers[0].waiting, 1);
  EXPECT_EQ(times.workers[1].other, 0);
}

TEST(Idle, BetweenTwoActionsOfOneWorkerIsItsOwn) {
  const Schedule schedule = pipeline_schedule({.minibatches = 1}, {});
  EXPECT_TRUE(idle_times(prove(schedule), {{{0, 1}, {1.5, 3}, {3.5, 4}}}).empty());
}

/// Two replicas of one stage: worker 0 reaches the reduction at 3, worker 1 at 7; the median of
/// backwards, which take 2 and 6 s, is 4.
/// Stage 1 has sent the gradient at 4; it is there at 8, and stage 0 adds it before its update.
TEST(Idle, BehindAPassThatAddsAGradientOfSharedWeightsIsTheLinks) {
  PipelineShape shape{.stages = 2};
  shape.skips = {{.from = 0, .to = 1, .lent_bytes = 8}};
  const Spans spans{{{0, 1}, {4, 5}, {8, 9}}, {{1, 2}, {2, 4}, {4, 5}}};
  for (const bool copies : {false, true}) {
    if (copies) {
      shape.skips = {};
      shape.tied = {{.first = 0, .second = 1, .numbers = 2, .bytes = 8}};
    }
    const auto idle = idle_times(prove(pipeline_schedule(shape, {})), spans);
    ASSERT_GE(idle.size(), 2u);
    EXPECT_EQ(idle[1].worker, 0);
    EXPECT_EQ(idle[1].begin, 5);
    EXPECT_EQ(idle[1].end, 8);
    EXPECT_EQ(part(idle[1], Blame::Link), 3);
  }
}

TEST(Idle, BeforeAReductionLastsUntilTheLastReplicaReachesIt) {
  const Schedule schedule = pipeline_schedule({.replicas = 2, .minibatches = 1}, {});
  const Spans spans{{{0, 1}, {1, 3}, {3, 9}, {9, 10}}, {{0, 1}, {1, 7}, {7, 9}, {9, 10}}};
  ASSERT_EQ(schedule.workers[0][2].kind, ActionKind::Reduce);
  const auto idle = idle_times(prove(schedule), spans);
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(idle[0].worker, 0);
  EXPECT_EQ(idle[0].sender, 1);
  EXPECT_EQ(idle[0].length(), 4) << "the sum itself, from 7 to 9, is work";
  EXPECT_EQ(measured_times(prove(schedule), spans).workers[0].busy, 6) << "10 s less the wait";
  EXPECT_EQ(part(idle[0], Blame::Straggler), 2) << "the backward should have ended at 5";
  EXPECT_EQ(part(idle[0], Blame::Order), 2);
}

TEST(Idle, PartsAddUpToItsLengthAndTheBubbleIsTheSimulators) {
  const Schedule schedule =
      pipeline_schedule({.stages = 4, .microbatches = 6, .minibatches = 2}, {.flush = true});
  Hardware hardware = ideal_hardware(4);
  hardware.within.latency = 0.25;
  hardware.devices[2].slowdown = 1.5;
  hardware.jitter = 0.2;
  const Simulation simulation =
      simulate(prove(schedule), equal_costs(4), hardware, {.memory = false});
  double sum = 0;
  for (const Idle& idle : idle_times(prove(schedule), simulation.spans)) {
    double parts = 0;
    for (const double each : idle.parts) parts += each;
    EXPECT_NEAR(parts, idle.length(), tolerance::kFewOperations * simulation.makespan);
    sum += idle.length();
  }
  EXPECT_NEAR(sum / (4 * simulation.makespan), simulation.bubble, tolerance::kFewOperations);
  const MeasuredTimes times = measured_times(prove(schedule), simulation.spans);
  EXPECT_NEAR(times.bubble, simulation.bubble, tolerance::kFewOperations);
  for (const WorkerTime& worker : times.workers) {
    EXPECT_NEAR(worker.busy + worker.sending + worker.waiting + worker.other, times.makespan,
                tolerance::kFewOperations * simulation.makespan);
    EXPECT_NEAR(worker.other, 0, tolerance::kFewOperations * simulation.makespan)
        << "the simulator knows of nothing else";
  }
}

/// Whatever the machine: with replicas a worker that waits in its own reduction is itself waited
/// for.
TEST(Idle, PartsAddUpWithReplicas) {
  for (const double slowdown : {1.0, 1.5, 4.0})
    for (const int microbatches : {1, 4}) {
      const Schedule schedule = pipeline_schedule(
          {.stages = 3, .replicas = 2, .microbatches = microbatches, .minibatches = 3},
          {.flush = true});
      Hardware hardware = ideal_hardware(6);
      hardware.within.latency = 0.25;
      hardware.devices[1].slowdown = slowdown;
      hardware.jitter = 0.3;
      std::vector<StageCost> costs = equal_costs(3);
      for (StageCost& cost : costs) cost.update = 0.25;
      const Simulation simulation = simulate(prove(schedule), costs, hardware, {.memory = false});
      for (const Idle& idle : idle_times(prove(schedule), simulation.spans)) {
        double parts = 0;
        for (const double each : idle.parts) parts += each;
        EXPECT_NEAR(parts, idle.length(), tolerance::kFewOperations * simulation.makespan)
            << slowdown << " " << microbatches << " worker " << idle.worker << " at " << idle.begin;
      }
    }
}

TEST(MeasuredTimes, SayForWhomAWorkerWaitedLongest) {
  const Spans spans{{{0, 2}}, {{.begin = 5, .end = 7, .decoding = 0.5}}};
  const MeasuredTimes times = measured_times(prove(forwards(2, 1)), spans);
  EXPECT_EQ(times.makespan, 7);
  EXPECT_EQ(times.workers[0].busy, 2);
  EXPECT_EQ(times.workers[0].longest_for, -1);
  EXPECT_EQ(times.workers[1].waiting, 5);
  EXPECT_EQ(times.workers[1].longest_for, 0);
  EXPECT_EQ(times.workers[1].longest_wait, 5);
  EXPECT_EQ(times.workers[1].coding, 0.5);
  EXPECT_EQ(times.bubble, 10.0 / 14);
}

TEST(Planned, IsTheScheduleWithTheMediansAndFreeLinks) {
  // Medians 1 and 2 s: the plan is 1 + 2 + 2 + 2 s.
  const Spans spans{{{0, 1}, {1, 2}, {2, 6}}, {{4, 6}, {6, 8}, {9, 14}}};
  EXPECT_EQ(planned(prove(forwards(2, 3)), spans).makespan, 7);
}

/// A recomputation may take longer than the forward that kept nothing.
TEST(Planned, TakesTheMedianOfRecomputations) {
  Schedule schedule = pipeline_schedule({.stages = 1}, {.flush = true});
  std::vector<Action>& actions = schedule.workers[0];
  Action again = actions[0];
  again.kind = ActionKind::Recompute;
  actions.insert(actions.begin() + 1, again);
  const Spans spans{{{0, 1}, {1, 3}, {3, 7}, {7, 7.5}}};
  EXPECT_EQ(planned(prove(schedule), spans).makespan, 7.5);
}

TEST(Planned, OfASimulationWithoutLinksIsThatSimulation) {
  const Schedule schedule =
      pipeline_schedule({.stages = 3, .microbatches = 4, .minibatches = 2}, {.flush = true});
  std::vector<StageCost> costs = equal_costs(3);
  costs[1].update = 0.5;
  const Simulation simulation =
      simulate(prove(schedule), costs, ideal_hardware(3), {.memory = false});
  EXPECT_EQ(planned(prove(schedule), simulation.spans).spans, simulation.spans);
}

}  // namespace
}  // namespace pipewright
