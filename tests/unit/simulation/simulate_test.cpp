// SPDX-License-Identifier: Apache-2.0
// Makespans, bubbles, traffic and bytes that follow from a closed form or from counting on paper.
#include "core/simulation/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/slots.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

Simulation simulation_of(const Schedule& schedule, std::span<const StageCost> costs,
                         const Hardware& hardware, const SimulationOptions& options = {}) {
  return simulate(prove(schedule), costs, hardware, options);
}

/// A forward takes 1 s, a backward 2, links nothing.
Simulation on_ideal(const Schedule& schedule) {
  return simulation_of(schedule, equal_costs(schedule.shape.stages),
                       ideal_hardware(schedule.shape.workers()));
}

Schedule gpipe(int stages, int microbatches, int minibatches = 1) {
  return pipeline_schedule(
      {.stages = stages, .microbatches = microbatches, .minibatches = minibatches},
      {.fill_drain = true});
}

Schedule one_f_one_b(int stages, int microbatches, int minibatches = 1) {
  return pipeline_schedule(
      {.stages = stages, .microbatches = microbatches, .minibatches = minibatches},
      {.flush = true});
}

Schedule pipedream(int stages, int minibatches) {
  return pipeline_schedule({.stages = stages, .minibatches = minibatches}, {.flush = false},
                           latest_weights, forward_weights);
}

/// Forwards of m micro-batches through two stages.
Schedule two_forwards(int microbatches) {
  return evaluation_schedule({.stages = 2, .microbatches = microbatches});
}

Hardware linked(int devices, LinkSpeed speed) {
  Hardware hardware = ideal_hardware(devices);
  hardware.within = speed;
  return hardware;
}

const LinkReport& link_of(const Simulation& simulation, int from, int to) {
  const auto found = std::ranges::find_if(
      simulation.links, [&](const LinkReport& link) { return link.from == from && link.to == to; });
  if (found == simulation.links.end()) throw std::out_of_range("no such link");
  return *found;
}

TEST(Makespan, OfFillDrainAndOneForwardOneBackwardIsThreeTimesMPlusPLess1) {
  const std::vector<std::array<int, 3>> known{{4, 8, 33}, {4, 16, 57}, {8, 32, 117}};
  for (const auto& [stages, microbatches, seconds] : known) {
    EXPECT_EQ(on_ideal(gpipe(stages, microbatches)).makespan, seconds);
    EXPECT_EQ(on_ideal(one_f_one_b(stages, microbatches)).makespan, seconds);
  }
}

TEST(Makespan, OfMiniBatchesThatFlushIsTheSum) {
  EXPECT_EQ(on_ideal(gpipe(4, 8, 5)).makespan, 5 * 33);
  EXPECT_EQ(on_ideal(one_f_one_b(4, 8, 5)).makespan, 5 * 33);
}

TEST(Makespan, OfOneMiniBatchInFlightIsTheSumOfAllPasses) {
  const Schedule schedule =
      pipeline_schedule({.stages = 5, .minibatches = 7}, {.one_at_a_time = true});
  EXPECT_EQ(on_ideal(schedule).makespan, 5 * 7 * 3);
}

TEST(Makespan, IsThatOfTheDrawingsWhereTheyApply) {
  for (const Schedule& schedule :
       {gpipe(3, 5, 2), one_f_one_b(4, 6, 2), pipedream(5, 9),
        pipeline_schedule({.stages = 4, .minibatches = 5, .placement = {0, 1, 1, 0}},
                          {.flush = false})}) {
    const Simulation simulation = on_ideal(schedule);
    const SlotTimes slots = slot_times(schedule);
    EXPECT_EQ(simulation.makespan, slots.makespan);
    for (std::size_t w = 0; w < schedule.workers.size(); ++w)
      for (std::size_t i = 0; i < schedule.workers[w].size(); ++i)
        EXPECT_EQ(simulation.spans[w][i].begin, slots.start[w][i]);
  }
}

/// Each backward is preceded by another forward, but the first of a stage is done while it waits.
TEST(Makespan, OfFillDrainThatRecomputesIsAForwardLongerForEachMicroBatch) {
  for (const auto& [n, m] : {std::pair{4, 8}, {4, 16}, {8, 32}})
    EXPECT_EQ(on_ideal(with_recomputation(gpipe(n, m), Recomputation::Always)).makespan,
              (m + n - 1) + 3 * m + 2 * (n - 1));
}

TEST(Bubble, OfFillDrainAndOneForwardOneBackwardIsNLess1OfMPlusNLess1) {
  for (int n = 1; n <= 9; ++n)
    for (int m = n; m <= 40; m += 5) {
      const double bubble = static_cast<double>(n - 1) / (m + n - 1);
      EXPECT_NEAR(on_ideal(gpipe(n, m)).bubble, bubble, tolerance::kFewOperations);
      EXPECT_NEAR(on_ideal(one_f_one_b(n, m)).bubble, bubble, tolerance::kFewOperations);
    }
}

TEST(Bubble, OfEveryWorkerIsTheTimeItDoesNothing) {
  const Simulation simulation = on_ideal(gpipe(4, 8));
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(simulation.workers[w].computing, 24);
    EXPECT_EQ(simulation.workers[w].idle, 9);
    EXPECT_DOUBLE_EQ(simulation.utilisation(w), 24.0 / 33);
  }
}

TEST(SteadyState, OfPipeDreamHasNoBubble) {
  EXPECT_EQ(on_ideal(pipedream(4, 32)).seconds_per_minibatch(), 3);
}

TEST(SteadyState, OfMiniBatchesThatFlushIsTheirMakespan) {
  EXPECT_EQ(on_ideal(gpipe(4, 8, 8)).seconds_per_minibatch(), 33);
  EXPECT_EQ(on_ideal(gpipe(4, 8, 2)).seconds_per_minibatch(), 33);
}

/// PipeDream over four stages whose forwards ask for weights `ahead` steps ahead on all but the
/// last stage; a backward asks for those of its forward. A prediction takes half a second.
Simulation predicting(int ahead) {
  const WeightRule rule = [ahead](const PassPlace& pass) {
    return Weights::latest(pass.stage + 1 < pass.stages ? ahead : 0);
  };
  std::vector<StageCost> costs = equal_costs(4);
  for (StageCost& cost : costs) cost.prediction = 0.5;
  return simulation_of(
      pipeline_schedule({.stages = 4, .minibatches = 32}, {.flush = false}, rule, forward_weights),
      costs, ideal_hardware(4));
}

TEST(Predictions, TakeTimeOnceForEachVersionPredicted) {
  EXPECT_EQ(predicting(0).seconds_per_minibatch(), 3);
  EXPECT_EQ(predicting(2).seconds_per_minibatch(), 3.5);
  // 32 forwards and backwards; the 4 − w forwards that fill the pipe share version 0's prediction.
  for (std::size_t w = 0; w < 3; ++w)
    EXPECT_EQ(predicting(2).workers[w].computing,
              32 * 3 + (32 - (3.0 - static_cast<double>(w))) / 2)
        << w;
  EXPECT_EQ(predicting(2).workers[3].computing, 32 * 3);
}

TEST(Predictions, OfOneVersionAreSharedByAllThatAskForIt) {
  const WeightRule ahead = [](const PassPlace&) { return Weights::latest(1); };
  std::vector<StageCost> costs = equal_costs(2);
  for (StageCost& cost : costs) cost.prediction = 0.5;
  const Schedule schedule = pipeline_schedule({.stages = 2, .microbatches = 4, .minibatches = 3},
                                              {.fill_drain = true}, ahead, ahead);
  const Simulation simulation = simulation_of(schedule, costs, ideal_hardware(2));
  // Three mini-batches of 4 · (1 + 2) s and one prediction each, for eight passes that read it.
  EXPECT_EQ(simulation.workers[0].computing, 3 * 12.5);
}

/// One stage that trains three mini-batches with weights predicted one step ahead: F0 B0 U0 F1 B1
/// U1 F2 B2 U2. A prediction takes 0.5 s by itself and 0.125 s within an update.
TEST(Predictions, OfAPassDirectlyBehindAnUpdateAreMadeByTheUpdate) {
  const WeightRule ahead = [](const PassPlace&) { return Weights::latest(1); };
  std::vector<StageCost> costs = equal_costs(1);
  costs[0].prediction = 0.5;
  costs[0].fused_prediction = 0.125;
  const Schedule schedule = pipeline_schedule({.minibatches = 3}, {}, ahead, forward_weights);
  const Simulation simulation = simulation_of(schedule, costs, ideal_hardware(1));
  const auto seconds = [&](std::size_t i) {
    return simulation.spans[0][i].end - simulation.spans[0][i].begin;
  };
  EXPECT_EQ(seconds(0), 1.5) << "F0 has no update before it";
  EXPECT_EQ(seconds(2), 0.125) << "U0 predicts for F1";
  EXPECT_EQ(seconds(3), 1) << "F1";
  EXPECT_EQ(seconds(8), 0) << "no pass comes behind U2";
}

/// PipeDream keeps old versions on every stage but the last.
TEST(NewVersions, TakeTimeWhereALaterPassReadsTheOldOne) {
  std::vector<StageCost> costs = equal_costs(2);
  for (StageCost& cost : costs) cost.new_version = 0.25;
  const Simulation simulation = simulation_of(pipedream(2, 8), costs, ideal_hardware(2));
  // Seven of stage 0's updates come between the forward and the backward of a mini-batch; behind
  // the last one nothing is read any more.
  EXPECT_EQ(simulation.workers[0].computing, 8 * 3 + 7 * 0.25);
  EXPECT_EQ(simulation.workers[1].computing, 8 * 3);
}

TEST(Links, AMessageTakesItsBytesThenItsLatency) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = costs[1].input_bytes = 500;
  const Hardware hardware = linked(2, {.latency = 0.25, .bandwidth = 1000});
  const Simulation simulation = simulation_of(two_forwards(1), costs, hardware);
  EXPECT_EQ(simulation.spans[1][0].begin, 1 + 0.5 + 0.25);
  EXPECT_EQ(simulation.makespan, 2.75);
  const Traffic& traffic = link_of(simulation, 0, 1).traffic;
  EXPECT_EQ(traffic.messages, 1);
  EXPECT_EQ(traffic.bytes, 500);
  EXPECT_EQ(traffic.busy, 0.5);
}

TEST(Links, CarryOneMessageAtATime) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = 3000;
  const Hardware hardware = linked(2, {.latency = 0, .bandwidth = 1000});
  const Simulation simulation = simulation_of(two_forwards(3), costs, hardware);
  // made at 1, 2, 3; through at 4, 7, 10
  EXPECT_EQ(simulation.spans[1][0].begin, 4);
  EXPECT_EQ(simulation.spans[1][1].begin, 7);
  EXPECT_EQ(simulation.spans[1][2].begin, 10);
  EXPECT_EQ(simulation.spans[0][2].end, 3) << "the sender goes on meanwhile";
}

TEST(Links, BetweenHostsThatNothingLimitsAreRemarkedOn) {
  const auto remark = [](const Hardware& hardware) {
    return unlimited_links_remark(hardware, simulation_of(gpipe(4, 1), equal_costs(4), hardware));
  };
  Hardware hosts = linked(4, {.bandwidth = 1000});
  EXPECT_EQ(remark(hosts), "") << "one host";
  hosts.devices_per_host = 2;
  EXPECT_TRUE(
      remark(hosts).starts_with("the hardware 'ideal' does not limit links between hosts "
                                "such as that from worker 1 to 2, so"))
      << remark(hosts);
  Hardware limited = hosts;
  limited.between.bandwidth = 1000;
  EXPECT_EQ(remark(limited), "");
  limited = hosts;
  limited.between.latency = 1;
  EXPECT_EQ(remark(limited), "");
  limited = hosts;
  limited.links = {{.from = 1, .to = 2, .speed = {.bandwidth = 1}},
                   {.from = 2, .to = 1, .speed = {.bandwidth = 1}}};
  EXPECT_EQ(remark(limited), "");
  limited = hosts;
  limited.buses = {{.name = "bus", .devices = {1}, .bandwidth = 1000}};
  EXPECT_EQ(remark(limited), "");
}

TEST(Links, GradientsGoTheOtherWay) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = 1000;
  costs[1].input_bytes = 1000;
  const Hardware hardware = linked(2, {.latency = 0.5, .bandwidth = 1000});
  const Simulation simulation = simulation_of(gpipe(2, 1), costs, hardware);
  // F 0–1, link until 2.5, F 2.5–3.5, B 3.5–5.5, link until 7, B 7–9
  EXPECT_EQ(simulation.makespan, 9);
  EXPECT_EQ(link_of(simulation, 1, 0).traffic.bytes, 1000);
}

TEST(Links, WithRoomForOneMessageHoldTheSenderBack) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[1].forward = 10;
  Schedule schedule = two_forwards(4);
  EXPECT_EQ(simulation_of(schedule, costs, ideal_hardware(2)).spans[0][3].end, 4);
  schedule.shape.link_capacity = 1;
  const Simulation simulation = simulation_of(schedule, costs, ideal_hardware(2));
  // Taken at 1, 11, 21, 31: message 1 leaves at 2, message 2 at 11, message 3 at 21.
  EXPECT_EQ(simulation.spans[0][2], (Span{2, 3}));
  EXPECT_EQ(simulation.spans[0][3], (Span{11, 12}));
  EXPECT_EQ(simulation.makespan, 41);
}

TEST(Links, StandStillWhileTheirSenderBlocks) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = 500;
  Hardware hardware = linked(2, {.latency = 0.25, .bandwidth = 1000});
  hardware.sending_blocks = true;
  const Simulation simulation = simulation_of(two_forwards(2), costs, hardware);
  EXPECT_EQ(simulation.spans[0][1].begin, 1.5) << "the latency is the network's";
  EXPECT_EQ(simulation.workers[0].communicating, 1);
  EXPECT_EQ(simulation.workers[0].computing, 2);
}

/// Workers 0 and 1 send to 2 and 3, a forward of stage 0 each: two replicas of two stages.
Simulation two_pairs(const Hardware& hardware, std::int64_t bytes) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = bytes;
  return simulation_of(evaluation_schedule({.stages = 2, .replicas = 2}), costs, hardware);
}

TEST(Buses, AreSharedByTheirLinks) {
  Hardware hardware = linked(4, {.latency = 0, .bandwidth = 1000});
  EXPECT_EQ(two_pairs(hardware, 2000).makespan, 1 + 2 + 1);
  hardware.buses = {{.name = "bus", .devices = {0, 1, 2, 3}, .bandwidth = 1000}};
  const Simulation simulation = two_pairs(hardware, 2000);
  EXPECT_EQ(simulation.spans[1][0].begin, 3);
  EXPECT_EQ(simulation.spans[3][0].begin, 5) << "waits for the other pair's message";
  EXPECT_EQ(simulation.buses[0].bytes, 4000);
  EXPECT_EQ(simulation.buses[0].busy, 4);
}

TEST(Buses, FasterThanTheirLinksDelayLess) {
  Hardware hardware = linked(4, {.latency = 0, .bandwidth = 1000});
  hardware.buses = {{.name = "bus", .devices = {0, 1, 2, 3}, .bandwidth = 2000}};
  EXPECT_EQ(two_pairs(hardware, 2000).makespan, 1 + 2 + 1) << "it has room for both";
}

TEST(Buses, ServeFirstWhoComesFirst) {
  Hardware hardware = linked(4, {.latency = 0, .bandwidth = 1000});
  hardware.buses = {{.name = "bus", .devices = {0, 1, 2, 3}, .bandwidth = 1000}};
  hardware.devices[0].slowdown = 1.5;  // the first pair's message is made later
  const Simulation simulation = two_pairs(hardware, 2000);
  EXPECT_EQ(simulation.spans[3][0].begin, 3);
  EXPECT_EQ(simulation.spans[1][0].begin, 5);
}

TEST(Buses, CarryOnlyWhatCrossesThem) {
  using Crossing = Bus::Crossing;
  Bus bus{.name = "host", .devices = {2, 3}, .crossing = Crossing::Leaving};
  EXPECT_TRUE(bus.carries(2, 0));
  EXPECT_FALSE(bus.carries(0, 2));
  EXPECT_FALSE(bus.carries(2, 3));
  bus.crossing = Crossing::Entering;
  EXPECT_TRUE(bus.carries(0, 3));
  EXPECT_FALSE(bus.carries(3, 0));
  bus.crossing = Crossing::Inside;
  EXPECT_TRUE(bus.carries(3, 2));
  EXPECT_FALSE(bus.carries(3, 0));
  bus.crossing = Crossing::Any;
  EXPECT_TRUE(bus.carries(0, 3));
  EXPECT_FALSE(bus.carries(0, 1));
}

/// Worker 0 holds stages 0 and 2 and sends to 1 and 2 at almost the same time.
Simulation two_ways(int engines) {
  std::vector<StageCost> costs = equal_costs(4);
  costs[0].output_bytes = costs[2].output_bytes = 10000;
  Hardware hardware = linked(3, {.latency = 0, .bandwidth = 1000});
  hardware.copy_engines = engines;
  Schedule schedule =
      evaluation_schedule({.stages = 4, .minibatches = 2, .placement = {0, 1, 0, 2}});
  return simulation_of(schedule, costs, hardware);
}

TEST(CopyEngines, SendOneMessageAfterTheOther) {
  auto starts = [](const Simulation& simulation) { return simulation.spans[2][0].begin; };
  // Mini-batch 0: stage 0 until 1, message until 11, stage 1 until 12, stage 2 until 13. Meanwhile
  // worker 0 has sent mini-batch 1 (11–21), and its message to worker 2 waits for the one engine.
  EXPECT_EQ(starts(two_ways(0)), 13 + 10);
  EXPECT_EQ(starts(two_ways(2)), 13 + 10);
  EXPECT_EQ(starts(two_ways(1)), 21 + 10);
}

/// The forwards of an evaluation, (stage, micro-batch) in the order of each worker.
Schedule forwards(PipelineShape shape,
                  const std::vector<std::vector<std::pair<int, int>>>& of_workers) {
  Schedule schedule = evaluation_schedule(shape);
  for (std::size_t w = 0; w < of_workers.size(); ++w)
    for (std::size_t i = 0; i < of_workers[w].size(); ++i) {
      schedule.workers[w][i].stage = of_workers[w][i].first;
      schedule.workers[w][i].microbatch = of_workers[w][i].second;
    }
  return schedule;
}

std::string stop_of(const Schedule& schedule, const Hardware& hardware) {
  try {
    simulation_of(schedule, equal_costs(schedule.shape.stages), hardware);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    return error.what();
  }
  return "it ends";
}

TEST(Receives, InOrderStopWhereALaterMessageIsWantedFirst) {
  const Schedule schedule =
      forwards({.stages = 2, .microbatches = 2}, {{{0, 0}, {0, 1}}, {{1, 1}, {1, 0}}});
  Hardware hardware = ideal_hardware(2);
  EXPECT_EQ(stop_of(schedule, hardware), "it ends");
  for (const Receives receives : {Receives::InOrder, Receives::Rendezvous}) {
    hardware.receives = receives;
    EXPECT_EQ(
        stop_of(schedule, hardware),
        concat("worker 1, action 0: the schedule stops on the hardware 'ideal', where "
               "copies.receives is ",
               receives == Receives::InOrder ? "in_order" : "rendezvous",
               ": deadlock: 1F0.1 can never start, because its input is behind that of 1F0.0 "
               "on the link from worker 0, and 1F0.0 comes later on the same worker (1F0.1 is "
               "the forward of stage 1, mini-batch 0, micro-batch 1)"));
  }
}

TEST(Receives, InOrderTakeAsLongAsInAnyWhereTheOrderIsTheSame) {
  std::vector<StageCost> costs = equal_costs(4);
  costs[1].output_bytes = 700;
  Hardware hardware = linked(4, {.latency = 0.25, .bandwidth = 1000});
  const auto spans = simulation_of(one_f_one_b(4, 6), costs, hardware).spans;
  hardware.receives = Receives::InOrder;
  EXPECT_EQ(simulation_of(one_f_one_b(4, 6), costs, hardware).spans, spans);
}

TEST(Receives, OfARendezvousLetTheirMessageBegin) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = 500;
  costs[1].forward = 3;
  Hardware hardware = linked(2, {.latency = 0.25, .bandwidth = 1000});
  hardware.sending_blocks = true;
  const auto second = [&] { return simulation_of(two_forwards(2), costs, hardware); };
  EXPECT_EQ(second().spans[1][1].begin, 1.75 + 3) << "it has arrived while worker 1 computed";
  EXPECT_EQ(second().workers[0].communicating, 0.5 + 0.5);
  hardware.receives = Receives::Rendezvous;
  EXPECT_EQ(second().spans[1][0].begin, 1.75) << "worker 1 has waited for it";
  EXPECT_EQ(second().spans[1][1].begin, 1.75 + 3 + 0.75);
  EXPECT_EQ(second().workers[0].communicating, 0.5 + (4.75 + 0.5 - 2.5));
}

TEST(Receives, StopWhereTwoWorkersSendToEachOtherAndBlock) {
  Hardware hardware = ideal_hardware(2);
  hardware.receives = Receives::Rendezvous;
  EXPECT_EQ(stop_of(one_f_one_b(2, 3), hardware), "it ends");
  hardware.sending_blocks = true;
  EXPECT_EQ(stop_of(one_f_one_b(2, 3), hardware),
            "worker 0, action 1: the schedule stops on the hardware 'ideal', where copies.receives "
            "is rendezvous and copies.block_compute true: deadlock: 0F0.1 can never end, because "
            "its message waits until worker 1 receives it, and worker 1 is stuck at 1B0.0, whose "
            "message waits until worker 0 receives it, and worker 0 is stuck at 0F0.1: a circle "
            "(0F0.1 is the forward of stage 0, mini-batch 0, micro-batch 1)");
}

TEST(Receives, StopWhereTheOneEngineOfTheirSenderWaitsForAnother) {
  const Schedule schedule = forwards(
      {.stages = 5, .microbatches = 2, .placement = {0, 1, 0, 2, 1}},
      {{{0, 0}, {0, 1}, {2, 0}, {2, 1}}, {{1, 0}, {4, 0}, {1, 1}, {4, 1}}, {{3, 0}, {3, 1}}});
  Hardware hardware = ideal_hardware(3);
  hardware.receives = Receives::Rendezvous;
  EXPECT_EQ(stop_of(schedule, hardware), "it ends");
  hardware.copy_engines = 1;
  EXPECT_EQ(stop_of(schedule, hardware),
            "worker 1, action 1: the schedule stops on the hardware 'ideal', where copies.receives "
            "is rendezvous: deadlock: 2F0.1 can never start, because it waits for 1F0.1 of worker "
            "1, queued behind 4F0.0, which waits for 3F0.0 of worker 2, which waits for 2F0.0 of "
            "worker 0, which first sends a message to worker 1, and worker 1 is stuck at 4F0.0: a "
            "circle (2F0.1 is the forward of stage 2, mini-batch 0, micro-batch 1)");
}

TEST(Replicas, MeetAtAReductionAndPayARing) {
  std::vector<StageCost> costs = equal_costs(1);
  costs[0].parameter_bytes = 6000;
  Hardware hardware = linked(3, {.latency = 0.25, .bandwidth = 1000});
  hardware.devices[1].slowdown = 2;
  const Schedule schedule = pipeline_schedule({.stages = 1, .replicas = 3}, {.flush = true});
  const Simulation simulation = simulation_of(schedule, costs, hardware);
  const double ring = 2 * 2 / 3.0 * 6000 / 1000 + 4 * 0.25;
  EXPECT_EQ(simulation.spans[0][2], (Span{6, 6 + ring})) << "the straggler comes at 6";
  EXPECT_EQ(simulation.makespan, 6 + ring);
  EXPECT_EQ(simulation.workers[0].communicating, ring);
  EXPECT_EQ(simulation.workers[0].idle, 3);
  EXPECT_EQ(link_of(simulation, 2, 0).traffic.bytes, 8000);
  EXPECT_EQ(link_of(simulation, 2, 0).traffic.messages, 4);
}

TEST(Replicas, OfASharedBusReduceSlower) {
  std::vector<StageCost> costs = equal_costs(1);
  costs[0].parameter_bytes = 6000;
  Hardware hardware = linked(3, {.latency = 0, .bandwidth = 1000});
  hardware.buses = {{.name = "bus", .devices = {0, 1, 2}, .bandwidth = 1000}};
  const Simulation simulation = simulation_of(
      pipeline_schedule({.stages = 1, .replicas = 3}, {.flush = true}), costs, hardware);
  EXPECT_EQ(simulation.makespan, 3 + 3 * 8) << "three links of the ring share it";
}

TEST(Replicas, OfTwoStagesTakeTurnsOnASharedBus) {
  std::vector<StageCost> costs = equal_costs(2);
  for (StageCost& cost : costs) cost.parameter_bytes = 4000;
  Hardware hardware = linked(4, {.latency = 0, .bandwidth = 4000});
  hardware.buses = {
      {.name = "card", .devices = {0, 1}, .crossing = Bus::Crossing::Leaving, .bandwidth = 1000}};
  const Simulation simulation = simulation_of(
      pipeline_schedule({.stages = 2, .replicas = 2}, {.flush = true}), costs, hardware);
  EXPECT_EQ(simulation.buses[0].busy, 8) << "4000 bytes of each stage leave the host";
  EXPECT_EQ(simulation.makespan, 12) << "stage 1 is ready at 4 and reduces until 8";
  EXPECT_EQ(simulation.workers[0].communicating, 6) << "stage 0 is ready at 6";
  EXPECT_EQ(simulation.workers[1].communicating, 4);
}

TEST(Stragglers, SetThePaceOfAFullPipe) {
  Hardware hardware = ideal_hardware(4);
  hardware.devices[2].slowdown = 1.5;
  const Simulation simulation = simulation_of(pipedream(4, 40), equal_costs(4), hardware);
  EXPECT_DOUBLE_EQ(simulation.seconds_per_minibatch(), 4.5);
  hardware.devices[2].speed = 3;
  EXPECT_DOUBLE_EQ(
      simulation_of(pipedream(4, 40), equal_costs(4), hardware).seconds_per_minibatch(), 3);
}

TEST(Jitter, IsTheSameForTheSameSeedAndNoOther) {
  Hardware hardware = ideal_hardware(4);
  hardware.jitter = 0.1;
  auto makespan = [&] {
    return simulation_of(pipedream(4, 40), equal_costs(4), hardware).makespan;
  };
  const double first = makespan();
  EXPECT_EQ(makespan(), first);
  hardware.seed = 2;
  EXPECT_NE(makespan(), first);
}

TEST(Jitter, HasTheMeanAndTheDeviationThatAreAskedFor) {
  Hardware hardware = ideal_hardware(1);
  hardware.jitter = 0.2;
  const Schedule schedule = evaluation_schedule({.stages = 1, .minibatches = 40000});
  const Simulation simulation = simulation_of(schedule, equal_costs(1), hardware);
  double sum = 0, squares = 0;
  for (const Span& span : simulation.spans[0]) {
    const double seconds = span.end - span.begin;
    sum += seconds;
    squares += seconds * seconds;
  }
  const double mean = sum / 40000;
  EXPECT_NEAR(mean, 1, tolerance::mean_of(40000, 0.2 * 0.2));
  EXPECT_NEAR(std::sqrt(squares / 40000 - mean * mean), 0.2, tolerance::kJitterDeviation);
}

TEST(Simulation, RefusesHardwareWithTooFewDevices) {
  try {
    on_ideal(gpipe(4, 1));
    simulate(prove(gpipe(4, 1)), equal_costs(4), ideal_hardware(3));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_STREQ(
        error.what(),
        "the hardware 'ideal' has 3 devices, but the schedule needs one for each of 4 workers; "
        "raise hosts or devices.count");
  }
}

TEST(Simulate, RefusesAMessageThatTakesForEver) {
  Hardware hardware = ideal_hardware(2);
  hardware.name = "slow";
  hardware.within.bandwidth = 5e-324;
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].output_bytes = costs[1].input_bytes = 1;
  try {
    simulation_of(gpipe(2, 1), costs, hardware);
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("messages from worker 0 to 1 take for ever"), std::string::npos)
        << error.message();
  }
}

TEST(Simulate, ABackwardWhoseGradientNobodyNeedsTakesLess) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[1].backward_sent = 0.5;
  EXPECT_EQ(simulation_of(gpipe(2, 1), costs, ideal_hardware(2)).makespan, 6) << "it is needed";
  Schedule local = gpipe(2, 1);
  for (std::vector<Action>& worker : local.workers)
    for (Action& action : worker)
      if (action.stage == 0 && action.kind == ActionKind::Backward) action.loss = 0;
  local.learns_from = {{0}, {1}};
  local.auxiliary = {0};
  Action head = local.workers[0][0];
  head.kind = ActionKind::Head;
  head.loss = 0;
  local.workers[0].insert(local.workers[0].begin() + 1, head);
  const Simulation simulation = simulation_of(local, costs, ideal_hardware(2));
  EXPECT_EQ(simulation.makespan, 1 + 1 + 1.5) << "the second stage's forward and backward";
}

/// On a V of four stages on two workers, the forward of micro-batch 1 at stage 0 beside the
/// backward of micro-batch 0 at stage 3.
Schedule with_pair(bool pair) {
  const auto steps = [](std::vector<PassStep> all, int paired) {
    if (paired >= 0) all[as_size(paired)].with_next = true;
    return all;
  };
  constexpr auto kF = ActionKind::Forward, kB = ActionKind::Backward;
  return schedule_of_workers({.stages = 4, .microbatches = 2, .placement = {0, 1, 1, 0}},
                             {steps({{kF, 0, 0},
                                     {kF, 3, 0},
                                     {kF, 0, 1},
                                     {kB, 3, 0},
                                     {kF, 3, 1},
                                     {kB, 3, 1},
                                     {kB, 0, 0},
                                     {kB, 0, 1}},
                                    pair ? 2 : -1),
                              {{kF, 1, 0},
                               {kF, 2, 0},
                               {kF, 1, 1},
                               {kF, 2, 1},
                               {kB, 2, 0},
                               {kB, 1, 0},
                               {kB, 2, 1},
                               {kB, 1, 1}}});
}

TEST(Simulate, AFusedPairBeginsAndEndsTogether) {
  for (const double overlap : {0.0, 0.5, 1.0}) {
    Hardware hardware = ideal_hardware(2);
    hardware.overlap = overlap;
    const Simulation simulation = simulation_of(with_pair(true), equal_costs(4), hardware);
    const double end = 4 + 1 + 2 - overlap * 1;  // a forward takes 1, a backward 2
    for (const std::size_t half : {2, 3}) {
      EXPECT_EQ(simulation.spans[0][half].begin, 4);
      EXPECT_EQ(simulation.spans[0][half].end, end);
    }
    EXPECT_EQ(simulation.spans[1][2].begin, end) << "the forward of the next stage";
    EXPECT_EQ(simulation.workers[0].computing, 4 * 3 - overlap);
    EXPECT_DOUBLE_EQ(simulation.workers[0].computing + simulation.workers[0].idle,
                     simulation.makespan);
  }
}

TEST(Simulate, AFusedPairTakesWhatTheStageOfItsForwardSays) {
  Hardware hardware = ideal_hardware(2);
  hardware.overlap = 1;  // for stages that do not say what a pair takes
  hardware.devices[0].speed = 2;
  std::vector<StageCost> costs = equal_costs(4);
  costs[3].fused_pair = 7;  // of the backward
  EXPECT_EQ(simulation_of(with_pair(true), costs, hardware).spans[0][2].end, 3 + 1);
  costs[0].fused_pair = 2.5;
  costs[0].coding_forward = 0.5;
  costs[3].coding_backward = 0.25;
  const Simulation simulation = simulation_of(with_pair(true), costs, hardware);
  for (const std::size_t half : {2, 3}) {
    EXPECT_EQ(simulation.spans[0][half].begin, 3.25) << "0F0 0.75, 1F0 and 2F0 1, 3F0 0.5";
    EXPECT_EQ(simulation.spans[0][half].end, 3.25 + (2.5 + 0.5 + 0.25) / 2);
  }
  const double in_turn = simulation_of(with_pair(false), costs, hardware).makespan;
  for (StageCost& stage : costs) stage.fused_pair.reset();
  EXPECT_EQ(simulation_of(with_pair(false), costs, hardware).makespan, in_turn)
      << "without a pair nobody asks what one takes";
}

TEST(Simulate, HidesNothingOfPassesThatRunInTurn) {
  Hardware hardware = ideal_hardware(2);
  const Simulation plain = simulation_of(with_pair(false), equal_costs(4), hardware);
  hardware.overlap = 1;
  const Simulation other = simulation_of(with_pair(false), equal_costs(4), hardware);
  EXPECT_EQ(plain.makespan, other.makespan);
  EXPECT_EQ(plain.spans[0][2].end, 5);
  EXPECT_EQ(plain.spans[1][2].begin, 5);
}

/// One stage, three micro-batches: 0F0 0o0 0F1 0o1 0F2 0B2 0f1 0B1 0f0 0B0 0U0 with ahead 0.
Schedule offloading(int ahead) {
  return with_offload(gpipe(1, 3), ahead);
}

/// Forwards take 1 s, backwards 2, and copies of 100 bytes so many seconds and a quarter.
Simulation with_host_link(const Schedule& schedule, double seconds) {
  std::vector<StageCost> costs = equal_costs(1);
  costs[0].activation_bytes = 100;
  Hardware hardware = ideal_hardware(1);
  hardware.host = {.latency = 0.25, .bandwidth = 100 / seconds};
  return simulation_of(schedule, costs, hardware);
}

TEST(HostCopies, AreMadeInTurnBesidePassesWhichWaitForFetches) {
  const Simulation simulation = with_host_link(offloading(0), 1.5);
  const std::vector<Span>& spans = simulation.spans[0];
  const auto at = [&](std::size_t i) { return std::pair(spans[i].begin, spans[i].end); };
  EXPECT_EQ(at(1), std::pair(1.0, 2.75)) << "0o0 behind 0F0";
  EXPECT_EQ(at(2), std::pair(1.0, 2.0)) << "0F1 goes on";
  EXPECT_EQ(at(3), std::pair(2.5, 4.25)) << "0o1 when the link has carried 0o0";
  EXPECT_EQ(at(5), std::pair(3.0, 5.0)) << "0B2";
  EXPECT_EQ(at(6), std::pair(5.0, 6.75)) << "0f1";
  EXPECT_EQ(at(7), std::pair(6.75, 8.75)) << "0B1 waits for it";
  EXPECT_EQ(at(8), std::pair(8.75, 10.5)) << "0f0";
  EXPECT_EQ(at(9), std::pair(10.5, 12.5)) << "0B0";
  EXPECT_EQ(simulation.makespan, 12.5);
  const HostCopies& host = simulation.workers[0].host;
  EXPECT_EQ(host.offloaded.messages, 2);
  EXPECT_EQ(host.offloaded.bytes, 200);
  EXPECT_EQ(host.offloaded.busy, 3);
  EXPECT_EQ(host.waiting, 3.5);
}

TEST(HostCopies, ThatBeginEarlierAreThereInTime) {
  const Simulation simulation = with_host_link(offloading(1), 1.5);
  EXPECT_EQ(simulation.workers[0].host.waiting, 1) << "0f1 begins when 0o1 has ended";
  EXPECT_EQ(simulation.makespan, 10);
  EXPECT_EQ(with_host_link(offloading(1), 0.25).workers[0].host.waiting, 0);
  EXPECT_EQ(with_host_link(gpipe(1, 3), 1.5).workers[0].host.offloaded.messages, 0);
}

TEST(HostCopies, NeedHardwareThatSaysHowFastTheyAre) {
  Hardware hardware = ideal_hardware(1);
  hardware.host.reset();
  const std::vector<StageCost> costs = equal_costs(1);
  EXPECT_NO_THROW(simulation_of(gpipe(1, 3), costs, hardware));
  try {
    simulation_of(offloading(1), costs, hardware);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(std::string(error.what()).find("expected host.bandwidth_gb_per_s"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace pipewright
