// SPDX-License-Identifier: Apache-2.0
// Schemes in virtual time: what their papers say about time and memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/base/as_size.h"
#include "core/cost/cost_table.h"
#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

constexpr std::int64_t kWeights = 1000;

std::vector<StageCost> made_up_costs(int stages) {
  std::vector<StageCost> costs = equal_costs(stages);
  for (StageCost& stage : costs) stage.parameter_bytes = kWeights;
  return costs;
}

Simulation simulation_of_scheme(const std::string& scheme, const std::string& options,
                                const PipelineShape& shape) {
  const Schedule schedule = schedule_of(scheme, options, shape);
  return simulate(prove(schedule), made_up_costs(shape.stages), ideal_hardware(shape.workers()),
                  {.memory_over_time = true});
}

std::int64_t most_weights(const WorkerReport& worker) {
  std::int64_t most = 0;
  for (const MemoryStep& step : worker.memory) most = std::max(most, step.use.weights);
  return most;
}

TEST(SimulatedInterlocking, TakesItsWidthTimesForwardAndBackward) {
  for (int stages = 2; stages <= 8; ++stages)
    for (int width = 2; width <= stages; ++width)
      EXPECT_DOUBLE_EQ(simulation_of_scheme("interlocking", concat("{width: ", width, "}"),
                                            {.stages = stages, .minibatches = 240})
                           .seconds_per_minibatch(),
                       3 * width)
          << width << "-wise, " << stages << " stages";
}

TEST(SimulatedInterlocking, OfLocalLearningNeverWaits) {  // heads cost nothing here
  const Simulation simulation =
      simulation_of_scheme("interlocking", "{width: 1}", {.stages = 4, .minibatches = 40});
  EXPECT_EQ(simulation.seconds_per_minibatch(), 3);
}

TEST(SimulatedPipeDream, HoldsOneVersionPerMiniBatchInFlight) {
  const Simulation simulation =
      simulation_of_scheme("pipedream", "{}", {.stages = 6, .minibatches = 20});
  for (int k = 0; k < 6; ++k)
    EXPECT_EQ(most_weights(simulation.workers[as_size(k)]), (6 - k) * kWeights);
}

TEST(SimulatedPipeDream2BW, HoldsTwoVersions) {
  const Simulation simulation = simulation_of_scheme(
      "pipedream_2bw", "{}", {.stages = 4, .microbatches = 4, .minibatches = 6});
  for (const WorkerReport& worker : simulation.workers)
    EXPECT_EQ(most_weights(worker), 2 * kWeights);
}

/// p workers of v stages, each of which takes 1/v of F = I = W = 1; M micro-batches.
Simulation on_workers(const std::string& scheme, int p, int v, int microbatches) {
  PipelineShape shape{.stages = p * v, .microbatches = microbatches};
  for (int stage = 0; stage < shape.stages; ++stage) shape.placement.push_back(stage % p);
  const std::string options = scheme == "zb_h2" ? "{}" : concat("{chunks: ", v, "}");
  const Schedule schedule = schedule_of(scheme, options, shape);
  prove(schedule);
  std::vector<StageCost> costs = equal_costs(shape.stages, 1.0 / v);
  for (StageCost& stage : costs) stage.activation_bytes = 1;
  return simulate(prove(schedule), costs, ideal_hardware(p));
}

TEST(SimulatedSplitBackwards, TakeWhatPyTorchsSchedulesTake) {
  for (const auto& [p, m, interleaved, zb1p] :
       {std::tuple{4, 8, 28.5, 25.5}, {4, 16, 52.5, 49.5}, {8, 32, 106.5, 99.5}}) {
    EXPECT_DOUBLE_EQ(on_workers("interleaved", p, 2, m).makespan, interleaved);
    EXPECT_DOUBLE_EQ(on_workers("zb_h1", p, 2, m).makespan, zb1p);
  }
}

TEST(SimulatedSplitBackwards, HaveTheBubblesOfTheirPapers) {
  for (int p = 2; p <= 5; ++p)
    for (const int v : {1, 2, 3}) {
      const int m = 4 * p;
      const double of_all = v * m + p - 1;
      EXPECT_NEAR(on_workers("interleaved", p, v, m).bubble, (p - 1) / of_all,
                  tolerance::kHundredOperations);
      EXPECT_NEAR(on_workers("zb_h1", p, 1, m).makespan, 3 * m + p - 1,
                  tolerance::seconds(3 * m + p - 1));
      EXPECT_NEAR(on_workers("zb_h2", p, 1, m).makespan, 3 * m + p - 1,
                  tolerance::seconds(3 * m + p - 1));
    }
}

TEST(SimulatedInterleaved, HoldsTheActivationsOfItsWarmUpAndOneMore) {
  const Simulation simulation = on_workers("interleaved", 8, 2, 32);
  for (std::size_t w = 0; w < 8; ++w)
    EXPECT_EQ(simulation.workers[w].peak.activations, 23 - 2 * static_cast<std::int64_t>(w));
}

TEST(SimulatedDataParallel, AddsTheRingToEveryMiniBatch) {
  const Schedule schedule =
      schedule_of("data_parallel", "{}", {.stages = 1, .replicas = 4, .minibatches = 5});
  Hardware hardware = ideal_hardware(4);
  hardware.within = {.latency = 0, .bandwidth = 1000};
  EXPECT_DOUBLE_EQ(simulate(prove(schedule), made_up_costs(1), hardware).makespan,
                   5 * (3 + 2 * 0.75));
}

TEST(SimulatedScheme, OfAnyKindHoldsTheCopiesThatVersionsCounts) {
  for (const SchemeCase& each : every_scheme()) {
    PipelineShape shape{.stages = 4, .minibatches = 9};
    if (each.name == "pipedream_2bw") shape.microbatches = shape.stages;
    if (each.name == "data_parallel") shape = {.stages = 1, .replicas = 3, .minibatches = 9};
    const SchemeReading reading(each.name, each.options);
    shape.placement = reading.scheme->placement(shape.stages);
    const Versions versions = prove(schedule_of(each.name, each.options, shape)).versions;
    const Simulation simulation = simulation_of_scheme(each.name, each.options, shape);
    std::vector<std::int64_t> copies(as_size(shape.workers_per_replica()), 0);
    for (int k = 0; k < shape.stages; ++k)
      copies[as_size(shape.worker_of(k, 0))] += versions.stages[as_size(k)][0].copies;
    for (std::size_t w = 0; w < copies.size(); ++w)
      EXPECT_EQ(most_weights(simulation.workers[w]), copies[w] * kWeights)
          << each.name << " " << each.options << ", worker " << w;
  }
}

}  // namespace
}  // namespace pipewright
