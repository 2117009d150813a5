// SPDX-License-Identifier: Apache-2.0
// Bytes of a simulation against what the papers count: versions of the weights, micro-batches in
// flight, inputs at the boundaries.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/as_size.h"
#include "core/cost/cost_table.h"
#include "core/cost/stage_memory.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr std::int64_t kWeights = 1000;
constexpr std::int64_t kActivations = 100;

/// Stages of kWeights and kActivations bytes, nothing else.
std::vector<StageCost> costs_of(int stages) {
  std::vector<StageCost> costs = equal_costs(stages);
  for (StageCost& stage : costs) {
    stage.parameter_bytes = kWeights;
    stage.activation_bytes = kActivations;
  }
  return costs;
}

Simulation simulated(const Schedule& schedule, const std::vector<StageCost>& costs,
                     SimulationOptions options = {}) {
  return simulate(prove(schedule), costs, ideal_hardware(schedule.shape.workers()), options);
}

/// The most that one worker ever holds of one part.
std::int64_t most(const Simulation& simulation, std::size_t worker, std::int64_t MemoryUse::*part) {
  std::int64_t all = 0;
  for (const MemoryStep& step : simulation.workers[worker].memory)
    all = std::max(all, step.use.*part);
  return all;
}

const SimulationOptions kOverTime{.memory_over_time = true};

TEST(MemoryOfWeights, OfPipeDreamIsOneVersionPerMiniBatchInFlight) {
  const int stages = 5;
  const Schedule schedule = pipeline_schedule({.stages = stages, .minibatches = 12},
                                              {.flush = false}, latest_weights, forward_weights);
  const Simulation simulation = simulated(schedule, costs_of(stages), kOverTime);
  for (int k = 0; k < stages; ++k)
    EXPECT_EQ(most(simulation, as_size(k), &MemoryUse::weights), (stages - k) * kWeights);
}

TEST(MemoryOfWeights, WithoutStashingIsOneVersion) {
  const Schedule schedule = pipeline_schedule({.stages = 5, .minibatches = 12}, {.flush = false});
  for (const WorkerReport& worker : simulated(schedule, costs_of(5)).workers)
    EXPECT_EQ(worker.peak.weights, kWeights);
}

TEST(MemoryOfWeights, OfAPredictionIsOneMore) {
  const Schedule schedule = pipeline_schedule(
      {.stages = 3, .minibatches = 9}, {.flush = false},
      [](const PassPlace& pass) { return Weights::latest(pass.depth()); }, latest_weights);
  const Simulation simulation = simulated(schedule, costs_of(3), kOverTime);
  EXPECT_EQ(most(simulation, 0, &MemoryUse::weights), 2 * kWeights);
  EXPECT_EQ(most(simulation, 2, &MemoryUse::weights), kWeights) << "D = 0: predicts nothing";
}

TEST(MemoryOfActivations, OfFillDrainIsThatOfAllMicroBatches) {
  const Schedule schedule =
      pipeline_schedule({.stages = 4, .microbatches = 8, .minibatches = 2}, {.fill_drain = true});
  for (const WorkerReport& worker : simulated(schedule, costs_of(4)).workers)
    EXPECT_EQ(worker.peak.activations, 8 * kActivations);
}

TEST(MemoryOfActivations, OfOneForwardOneBackwardIsThatOfTheStagesToCome) {
  const Schedule schedule =
      pipeline_schedule({.stages = 4, .microbatches = 8, .minibatches = 2}, {.flush = true});
  const Simulation simulation = simulated(schedule, costs_of(4));
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(simulation.workers[as_size(k)].peak.activations, (4 - k) * kActivations);
}

TEST(MemoryOfActivations, OfAnEvaluationIsOneForwards) {
  const Schedule schedule = evaluation_schedule({.stages = 3, .minibatches = 6});
  for (const WorkerReport& worker :
       simulated(schedule, costs_of(3), {.optimizer_state = 2}).workers) {
    EXPECT_EQ(worker.peak.activations, kActivations);
    EXPECT_EQ(worker.peak.gradients, 0);
    EXPECT_EQ(worker.peak.optimizer, 0);
  }
}

TEST(MemoryOfActivations, RecomputedIsThatOfOneMicroBatchAndTheInputsOfAll) {
  std::vector<StageCost> costs = costs_of(4);
  for (StageCost& stage : costs) stage.input_bytes = 10;
  const Schedule schedule = with_recomputation(
      pipeline_schedule({.stages = 4, .microbatches = 8, .minibatches = 2}, {.fill_drain = true}),
      Recomputation::Always);
  const Simulation simulation = simulated(schedule, costs, kOverTime);
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(most(simulation, w, &MemoryUse::activations), kActivations);
    EXPECT_EQ(most(simulation, w, &MemoryUse::boundaries), 8 * 10);
  }
}

TEST(MemoryOfActivations, ThatIsToBeRecomputedNeedsWhatAForwardNeedsThatKeepsNothing) {
  std::vector<StageCost> costs = costs_of(1);
  costs[0].peak_bytes = 70;
  costs[0].peak_bare_bytes = 30;
  const Schedule schedule =
      with_recomputation(pipeline_schedule({.stages = 1, .microbatches = 2}, {.fill_drain = true}),
                         Recomputation::Always);
  const Simulation simulation = simulated(schedule, costs, kOverTime);
  for (const MemoryStep& step : simulation.workers[0].memory)
    if (step.time < 2) {
      EXPECT_LE(step.use.passing, 30) << step.time;
    }
  EXPECT_EQ(most(simulation, 0, &MemoryUse::passing), 70);
}

TEST(MemoryOfActivations, IsGivenBackWhileGradientsAreMade) {
  std::vector<StageCost> costs = costs_of(1);
  costs[0].freed_bytes = 40;
  const Simulation simulation = simulated(
      pipeline_schedule({.stages = 1, .microbatches = 2}, {.fill_drain = true}), costs, kOverTime);
  const WorkerReport& worker = simulation.workers[0];
  EXPECT_EQ(worker.peak.total(), 2 * kWeights + 2 * kActivations - 40);
  EXPECT_EQ(worker.memory.back().use.activations, 0);
}

TEST(MemoryOfGradients, IsThereFromTheFirstBackwardToTheUpdate) {
  const Schedule schedule =
      pipeline_schedule({.stages = 1, .microbatches = 2, .minibatches = 2}, {.fill_drain = true});
  std::vector<StageCost> costs = costs_of(1);
  costs[0].update = 0.5;
  const Simulation simulation = simulated(schedule, costs, kOverTime);
  for (const MemoryStep& step : simulation.workers[0].memory) {  // 2 F, 2 B, U, each mini-batch
    const double within = step.time < 6.5 ? step.time : step.time - 6.5;
    if (within > 2 && within < 6.5) {
      EXPECT_EQ(step.use.gradients, kWeights) << step.time;
    }
    if (within > 0 && within < 2) {
      EXPECT_EQ(step.use.gradients, 0) << step.time;
    }
  }
}

TEST(MemoryOfTheOptimizer, IsAFactorOfTheParametersAtAllTimes) {
  const Simulation simulation =
      simulated(pipeline_schedule({.stages = 2, .minibatches = 2}, {.one_at_a_time = true}),
                costs_of(2), {.memory_over_time = true, .optimizer_state = 2});
  for (const MemoryStep& step : simulation.workers[1].memory)
    EXPECT_EQ(step.use.optimizer, 2 * kWeights);
}

TEST(MemoryOfBoundaries, HoldsInputsUntilTheLastBackwardAndMessagesUntilTheyAreTaken) {
  std::vector<StageCost> costs = equal_costs(2);
  costs[1].forward = 10;
  costs[0].input_bytes = 7;
  costs[0].output_bytes = costs[1].input_bytes = 50;
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 3}, {.fill_drain = true});
  const Simulation simulation = simulated(schedule, costs, kOverTime);
  EXPECT_EQ(most(simulation, 0, &MemoryUse::boundaries), 3 * 7 + 50)
      << "three inputs, and one gradient at a time";
  EXPECT_EQ(most(simulation, 1, &MemoryUse::boundaries), 3 * 50);
  for (const MemoryStep& step : simulation.workers[1].memory)
    if (step.time == 3 && step.use.boundaries == 150) return;
  ADD_FAILURE() << "the third message comes at 3, long before it is taken";
}

/// Layers whose activations, weights and needs are all of the same order.
Profile random_layers(std::mt19937& random) {
  const auto bytes = [&] { return static_cast<std::int64_t>(random() % 100); };
  Profile profile{.input_bytes = bytes()};
  profile.layers.resize(1 + random() % 6);
  for (LayerCost& layer : profile.layers) {
    layer = {.forward = 1,
             .backward = 2,
             .output_bytes = bytes(),
             .activation_bytes = bytes(),
             .peak_bytes = bytes(),
             .parameter_bytes = bytes(),
             .buffer_bytes = bytes()};
    layer.peak_adding_bytes = layer.peak_bytes + bytes();
    layer.copy_bytes = static_cast<std::int64_t>(random() % 2) * (layer.parameter_bytes / 2);
  }
  return profile;
}

TEST(Memory, OfAWorkerThatWaitsForNobodyIsWhatPartitioningCountsWith) {
  std::mt19937 random(3);
  for (const Recomputation which :
       {Recomputation::Never, Recomputation::Always, Recomputation::ExceptLast})
    for (int round = 0; round < 100; ++round) {
      const Profile profile = random_layers(random);
      const std::vector<std::int64_t> whole{std::ssize(profile.layers)};
      const Schedule schedule =
          with_recomputation(pipeline_schedule({.stages = 1, .microbatches = 3, .minibatches = 3},
                                               {.flush = true, .fill_drain = round % 2 == 0}),
                             which);
      const StageMemories memories(profile, stage_moments(prove(schedule)), 2);
      const Simulation simulation =
          simulated(schedule, stage_costs(profile, whole), {.optimizer_state = 2});
      EXPECT_EQ(simulation.workers[0].peak.total(), memories.of_cut(whole)[0].total());
    }
}

/// The first of two stages that learn from their own losses: it waits for nobody.
TEST(Memory, OfAWorkerWithAHeadIsWhatPartitioningCountsWith) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    Profile profile = random_layers(random);
    std::vector<LayerCost> heads(profile.layers.size(), random_layers(random).layers.front());
    const std::vector<std::int64_t> cut{std::ssize(profile.layers), 1};
    profile.layers.push_back({.name = "of the last stage"});
    heads.emplace_back();
    const AuxiliaryHeads behind{.stages = {0}, .behind = heads};
    const Schedule schedule = schedule_of("interlocking", "{width: 1}",
                                          {.stages = 2, .microbatches = 3, .minibatches = 3});
    const StageMemories memories(profile, stage_moments(prove(schedule)), 2, {.heads = behind});
    const Simulation simulation =
        simulated(schedule, stage_costs(profile, cut, behind), {.optimizer_state = 2});
    EXPECT_EQ(simulation.workers[0].peak.total(), memories.of_cut(cut)[0].total()) << round;
  }
}

/// Two micro-batches F H B F H B U, each pass of a second but the backwards of two.
TEST(Memory, OfAHeadIsThatOfItsWeightsAndOfThePassesThatNeedIt) {
  std::vector<StageCost> costs = costs_of(2);
  costs[0].head = 1;
  add_head(costs[0], {.activation_bytes = 7,
                      .peak_bytes = 30,
                      .peak_adding_bytes = 40,
                      .parameter_bytes = 500,
                      .buffer_bytes = 3});
  const Schedule schedule =
      schedule_of("interlocking", "{width: 1}", {.stages = 2, .microbatches = 2});
  const Simulation simulation =
      simulated(schedule, costs, {.memory_over_time = true, .optimizer_state = 2});
  const auto at = [&](double time) {  // the most that is held while the pass of that time runs
    MemoryUse most;
    for (const MemoryStep& step : simulation.workers[0].memory)
      if (step.time == time && step.use.total() > most.total()) most = step.use;
    return most;
  };
  EXPECT_EQ(at(1), (MemoryUse{.weights = kWeights + 503,
                              .gradients = 500,
                              .optimizer = 2 * (kWeights + 500),
                              .activations = kActivations + 7,
                              .passing = 30}))
      << "the head of the first micro-batch";
  EXPECT_EQ(at(5), (MemoryUse{.weights = kWeights + 503,
                              .gradients = kWeights + 500,
                              .optimizer = 2 * (kWeights + 500),
                              .activations = kActivations + 7,
                              .passing = 40}))
      << "the head of the second";
  EXPECT_EQ(simulation.workers[0].memory.back().use.activations, 0);
  EXPECT_EQ(simulation.workers[0].memory.back().use.gradients, 0);
}

/// Only the memory of versions stays, as many as there have been at once: later ones are made
/// there.
TEST(Memory, IsAllGivenBackAtTheEndButThatOfVersions) {
  std::vector<StageCost> costs = costs_of(3);
  for (StageCost& stage : costs) {
    stage.copy_bytes = 100;
    stage.input_bytes = 11;
    stage.output_bytes = 11;
    stage.peak_bytes = 5;
    stage.buffer_bytes = 3;
  }
  for (const bool flush : {true, false}) {
    const Schedule schedule = pipeline_schedule({.stages = 3, .microbatches = 4, .minibatches = 5},
                                                {.flush = flush}, latest_weights, forward_weights);
    for (const WorkerReport& worker : simulated(schedule, costs, kOverTime).workers) {
      std::int64_t most = 0, last = 0;
      for (const MemoryStep& each : worker.memory) {
        EXPECT_GE(each.use.weights, last) << "nothing is given back";
        most = std::max(most, last = each.use.weights);
      }
      EXPECT_EQ((most - 3) % (kWeights + 100), 0);
      EXPECT_EQ(worker.memory.back().use, MemoryUse{.weights = most});
    }
  }
}

TEST(Memory, AtItsPeakIsTheSumOfItsParts) {
  std::vector<StageCost> costs = costs_of(1);
  costs[0].input_bytes = 20;
  costs[0].peak_bytes = 5;
  costs[0].buffer_bytes = 3;
  const Simulation simulation =
      simulated(pipeline_schedule({.stages = 1, .microbatches = 2}, {.fill_drain = true}), costs,
                {.optimizer_state = 1});
  const WorkerReport& worker = simulation.workers[0];
  EXPECT_EQ(worker.peak, (MemoryUse{.weights = kWeights + 3,
                                    .gradients = kWeights,
                                    .optimizer = kWeights,
                                    .activations = 2 * kActivations,
                                    .boundaries = 40,
                                    .passing = 5}));
  EXPECT_EQ(worker.peak.total(), 3 * kWeights + 248);
  EXPECT_EQ(worker.peak_at, 2) << "when the first backward begins";
}

/// A forward beside a backward needs its own passing memory at the same time.
TEST(SimulatedMemory, OfAFusedPairIsThatOfBothHalves) {
  Schedule schedule = schedule_of("dualpipe_v", "{}", {.stages = 2, .microbatches = 4});
  std::vector<StageCost> costs = equal_costs(2);
  costs[0].peak_bytes = 10;
  costs[1].peak_bytes = costs[1].peak_adding_bytes = 100;
  costs[0].peak_adding_bytes = 10;
  const auto most_passing = [&] {
    std::int64_t most = 0;
    const Simulation simulation = simulated(schedule, costs, {.memory_over_time = true});
    for (const auto& [time, use] : simulation.workers[0].memory) most = std::max(most, use.passing);
    return most;
  };
  EXPECT_EQ(most_passing(), 110);
  for (Action& action : schedule.workers[0]) action.with_next = false;
  EXPECT_EQ(most_passing(), 100);
}

/// 0F0 0o0 0F1 0o1 0F2 0B2 0f1 0B1 0f0 0B0 0U0; an offload ends 1.5 s after its forward.
TEST(MemoryOfActivations, ThatAreOffloadedIsFreeFromTheEndOfTheOffloadToTheBeginningOfTheFetch) {
  const Schedule schedule =
      with_offload(pipeline_schedule({.stages = 1, .microbatches = 3}, {.fill_drain = true}), 0);
  prove(schedule);
  Hardware hardware = ideal_hardware(1);
  hardware.host = {.latency = 0.5, .bandwidth = kActivations};
  const Simulation simulation = simulate(prove(schedule), costs_of(1), hardware, kOverTime);
  const auto held_at = [&](double time) {
    std::int64_t held = 0;
    for (const MemoryStep& step : simulation.workers[0].memory)
      if (step.time <= time) held = step.use.activations;
    return held / kActivations;
  };
  EXPECT_EQ(held_at(0.5), 1);
  EXPECT_EQ(held_at(2.25), 3) << "0F0 until 2.5, 0F1, 0F2";
  EXPECT_EQ(held_at(2.75), 2);
  EXPECT_EQ(held_at(4), 1) << "0F1 is away at 3.5";
  EXPECT_EQ(held_at(5.25), 1) << "0f1 begins at 5, when 0B2 has ended";
  EXPECT_EQ(held_at(8.75), 1) << "0f0 begins at 8.5, when 0B1 has ended";
  EXPECT_EQ(simulation.workers[0].host.most_bytes, 2 * kActivations);
}

/// With copies in no time a stage holds what it computes with and what it fetches.
TEST(MemoryOfActivations, ThatAreOffloadedIsThatOfOneMicroBatchAndThoseFetchedAhead) {
  for (const auto& [ahead, away] : {std::pair(0, 7), {1, 7}, {2, 6}}) {
    const Schedule schedule = with_offload(
        pipeline_schedule({.stages = 2, .microbatches = 8}, {.fill_drain = true}), ahead);
    const Simulation simulation = simulated(schedule, costs_of(2), kOverTime);
    EXPECT_EQ(most(simulation, 0, &MemoryUse::activations), (1 + ahead) * kActivations);
    EXPECT_EQ(simulation.workers[0].host.most_bytes, away * kActivations);
  }
}

TEST(StageMoments, CountWhatIsOffloadedAsInputsOnly) {
  const auto kept = [](const Schedule& schedule) {
    int most = 0;
    const auto moments = stage_moments(prove(schedule));
    for (const StageMoment& moment : moments[0]) most = std::max(most, moment.kept);
    return most;
  };
  const Schedule plain = pipeline_schedule({.stages = 2, .microbatches = 8}, {.fill_drain = true});
  EXPECT_EQ(kept(plain), 8);
  EXPECT_EQ(kept(with_offload(plain, 0)), 1);
  EXPECT_EQ(kept(with_offload(plain, 1)), 2);
}

}  // namespace
}  // namespace pipewright
