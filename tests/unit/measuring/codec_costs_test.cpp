// SPDX-License-Identifier: Apache-2.0
// What the simulator makes of codecs: the bytes that a run counts, and the time the hardware says.
#include "core/measuring/codec_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/modelled.h"
#include "core/simulation/simulate.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

constexpr const char* kEncoder =
    "model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5}, "
    "pipeline.balance: layers";

Hardware rated_hardware() {
  Hardware hardware = ideal_hardware(1);
  hardware.rates = {.flops = 1e12, .bandwidth = 1e12};
  return hardware;
}

/// Bytes a message between two stages has in the simulation and in a run.
TEST(Crossing, HasTheBytesThatRunsCount) {
  for (const char* model : {"dataset.train: 48", kEncoder})
    for (const char* codec :
         {"{name: fp16}", "{name: sort_quantization}", "{name: uniform, bits: 5, per: channel}",
          "{name: mx, element: fp4_e2m1, edges: [1]}", "{name: svd, rank: 2}",
          "{name: bf16, backward: {name: none}}"}) {
      Laboratory laboratory(concat("{scheme: {name: gpipe}, pipeline.microbatches: 2, ", model,
                                   ", pipeline.compression: ", codec, "}"));
      std::vector<StageCost> costs(4);
      for (StageCost& cost : costs) cost.output_bytes = cost.input_bytes = -1;
      account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment), {});
      const RunResult run = train(laboratory.plan(), laboratory.plan().stages(), Execution::Serial);
      ASSERT_EQ(run.traffic.size(), 6u);
      for (const EdgeTraffic& edge : run.traffic) {
        const StageCost& from = costs[as_size(edge.from)];
        const auto simulated = edge.from < edge.to ? from.sent_bytes : from.sent_gradient_bytes;
        ASSERT_TRUE(simulated) << codec;
        EXPECT_EQ(static_cast<double>(*simulated), edge.sent_bytes / edge.messages)
            << codec << " " << edge.from << " → " << edge.to;
      }
    }
}

/// Where micro-batches differ, the simulation takes the largest for all of them, with a codec too.
TEST(Crossing, HasTheBytesOfTheLargestOfUnevenMicroBatches) {
  const auto sent = [](const char* loader) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, pipeline.microbatches: 4, pipeline."
               "compression: {name: fp16}, ",
               loader, "}"));
    std::vector<StageCost> costs(4);
    account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment), {});
    return costs[0].sent_bytes.value_or(0);
  };
  EXPECT_EQ(sent("loader.batch_size: 7"), sent("loader.batch_size: 8"));
  EXPECT_GT(sent("loader.batch_size: 8"), sent("loader.batch_size: 4"));
}

/// A subspace's tokens cross forwards only, without a codec, too.
TEST(Crossing, IntegersHaveNoGradientOnUncompressedEdges) {
  for (const int slices : {1, 5}) {
    Laboratory laboratory(concat(
        "{scheme: {name: gpipe}, pipeline: {microbatches: 2, balance: layers, slices: ", slices,
        "}, model: {name: decoder, preset: slow_links, layers: 2, width: 8, heads: 2, "
        "tokens: 5, vocabulary: 16, subspace: 4}}"));
    const Experiment& experiment = laboratory.experiment;
    std::vector<StageCost> costs = CostSource(CostFiles()).of(experiment, rated_hardware()).stages;
    account_for_codecs(costs, experiment, edge_messages(experiment), {});
    const RunResult run = train(laboratory.plan(), laboratory.plan().stages(), Execution::Serial);
    for (const EdgeTraffic& edge : run.traffic) {
      const StageCost& from = costs[as_size(edge.from)];
      const std::int64_t simulated = edge.from < edge.to
                                         ? from.sent_bytes.value_or(from.output_bytes)
                                         : from.sent_gradient_bytes.value_or(from.input_bytes);
      EXPECT_EQ(static_cast<double>(simulated), edge.sent_bytes / edge.messages)
          << slices << " slices, " << edge.from << " → " << edge.to;
    }
    EXPECT_LT(costs[1].sent_gradient_bytes.value_or(costs[1].input_bytes), costs[1].input_bytes);
  }
}

/// Bytes that a replica puts into a stage's sums in the simulation and in a run.
TEST(Crossing, SumsHaveTheBytesThatRunsCount) {
  constexpr const char* kCnn =
      "model: {name: cnn, width: 0.25, size: 8, channels: 1, classes: 3}, pipeline.balance: layers";
  const std::vector<std::pair<const char*, const char*>> kRuns{
      {"gpipe", "train.precision: float64"},
      {"interlocking", "train.precision: float64"},
      {"gpipe", kCnn},
      {"gpipe", kEncoder}};
  for (const auto& [scheme, model] : kRuns)
    for (const char* compression : {"{name: none}", "{name: powersgd, rank: 1}",
                                    "{name: powersgd, rank: 3}", "{name: powersgd, rank: 100}"}) {
      Laboratory laboratory(concat("{scheme: {name: ", scheme,
                                   "}, pipeline.replicas: 2, pipeline.stages: 3, ", model,
                                   ", pipeline.gradient_compression: ", compression, "}"));
      const Experiment& experiment = laboratory.experiment;
      std::vector<StageCost> costs =
          CostSource(CostFiles()).of(experiment, rated_hardware()).stages;
      account_for_codecs(costs, experiment, edge_messages(experiment), {});
      const Simulation simulation =
          simulate(prove(experiment.schedule(1)), costs, ideal_hardware(6), {.memory = false});
      const RunResult run = train(laboratory.plan(), laboratory.plan().stages(), Execution::Serial);
      int stages = 0;
      for (const EdgeTraffic& sums : run.traffic) {
        if (!sums.reduces()) continue;
        ++stages;
        const int one = experiment.shape(1).worker_of(sums.from, 0),
                  other = experiment.shape(1).worker_of(sums.from, 1);
        // A ring of two: each sends the other half of it, and then the half that it has added.
        const auto link = std::ranges::find_if(simulation.links, [&](const LinkReport& each) {
          return each.from == one && each.to == other;
        });
        ASSERT_NE(link, simulation.links.end());
        EXPECT_EQ(static_cast<double>(link->traffic.bytes), sums.sent_bytes / sums.messages)
            << scheme << " " << model << " " << compression << " stage " << sums.from;
      }
      EXPECT_EQ(stages, 3);
    }
}

/// Twice the latency, for there are two sums; and the time of what factors stand for, before them.
TEST(Crossing, SumsTakeTheTimeThatTheHardwareSays) {
  Laboratory laboratory(
      "{pipeline.stages: 1, pipeline.replicas: 2, scheme: {name: data_parallel}, "
      "pipeline.gradient_compression: {name: powersgd, rank: 1}}");
  const double weights = 4 * (5 * 6 + 5 * 5 + 5 * 5 + 3 * 5), biases = 4 * (5 + 5 + 5 + 3),
               factors = 4 * (11 + 10 + 10 + 8);
  const std::vector<StageCost> plain(
      1, {.forward = 1, .backward = 2, .parameter_bytes = std::llround(weights + biases)});
  Hardware hardware = ideal_hardware(2);
  hardware.within = {.latency = 0.25, .bandwidth = 1000};
  const Schedule schedule = laboratory.experiment.schedule(1);
  std::vector<StageCost> costs = plain;
  EXPECT_EQ(account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment),
                               hardware),
            std::vector<std::string>{"powersgd"});
  const double ring = (factors + biases) / 1000 + 4 * 0.25;
  EXPECT_NEAR(simulate(prove(schedule), costs, hardware, {}).makespan, 3 + ring,
              tolerance::seconds(20));
  EXPECT_NEAR(simulate(prove(schedule), plain, hardware, {}).makespan,
              3 + (weights + biases) / 1000 + 2 * 0.25, tolerance::seconds(20));
  hardware.codecs = {{.codec = "powersgd", .encode = 100, .decode = 200}};
  hardware.devices[1].slowdown = 2;
  costs = plain;
  EXPECT_TRUE(account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment),
                                 hardware)
                  .empty());
  const Simulation slower = simulate(prove(schedule), costs, hardware, {});
  const double coding = weights / 100 + weights / 200;
  EXPECT_NEAR(slower.makespan, 2 * (3 + coding) + ring, tolerance::seconds(20));
  EXPECT_NEAR(slower.workers[0].computing, 3 + coding, tolerance::seconds(20));
  EXPECT_NEAR(slower.workers[0].communicating, ring, tolerance::seconds(20));
}

TEST(Crossing, LeavesUncompressedPipelinesAlone) {
  Laboratory laboratory;
  std::vector<StageCost> costs(4);
  EXPECT_TRUE(
      account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment), {})
          .empty());
  EXPECT_FALSE(costs[0].sent_bytes || costs[1].sent_gradient_bytes);
}

/// One mini-batch in flight: every encoding and decoding stands in the makespan, once there and
/// once back; links carry what is left.
TEST(Crossing, TakesTheTimeThatTheHardwareSays) {
  Laboratory laboratory("{pipeline.compression: {name: fp16, backward: {name: bf16}, edges: [1]}}");
  const double raw = 8 * 5 * 4, left = 8 * 5 * 2 + 32;  // 8 samples of 5 values; a header
  Hardware hardware = ideal_hardware(4);
  hardware.within.bandwidth = 1e3;
  hardware.codecs = {{.codec = "fp16", .encode = 1e4, .decode = 2e4}};
  const Schedule schedule = laboratory.experiment.schedule(1);
  const std::vector<StageCost> plain(
      4, {.forward = 1, .backward = 2, .input_bytes = 160, .output_bytes = 160});
  std::vector<StageCost> costs = plain;
  EXPECT_EQ(account_for_codecs(costs, laboratory.experiment, edge_messages(laboratory.experiment),
                               hardware),
            std::vector<std::string>{"bf16"});
  const double gained = simulate(prove(schedule), plain, hardware, {}).makespan -
                        simulate(prove(schedule), costs, hardware, {}).makespan;
  EXPECT_NEAR(gained, 2 * (raw - left) / 1e3 - raw / 1e4 - raw / 2e4, tolerance::seconds(20));
}

double metric(const RunRecord& run, const std::string& name) {
  for (const auto& [known, value] : run.modelled)
    if (known == name) return value;
  return -1;
}

/// What links must carry beside what they can: half the bytes in less time.
TEST(Crossing, ShowsInModelledTables) {
  Hardware hardware = ideal_hardware(4);
  hardware.rates = {.flops = 1e12, .bandwidth = 1e12};
  hardware.within.bandwidth = 512 * 1024.0 * 1024.0;
  std::vector<RunRecord> runs(2);
  runs[0].config = Laboratory("{pipeline.compression: {name: none}}").experiment.resolved;
  runs[1].config = Laboratory("{pipeline.compression: {name: fp16}}").experiment.resolved;
  add_modelled(runs, hardware);
  for (const RunRecord& run : runs) EXPECT_EQ(metric(run, "modelled_link_mib_per_s"), 512);
  const auto bytes = [&](const RunRecord& run) {
    return metric(run, "modelled_required_mib_per_s") / metric(run, "modelled_samples_per_second");
  };
  // 8 samples of 5 values over three edges both ways; a header has 32 bytes.
  EXPECT_NEAR(bytes(runs[1]) / bytes(runs[0]), (8 * 5 * 2 + 32.0) / (8 * 5 * 4),
              tolerance::kFewOperations);
}

}  // namespace
}  // namespace pipewright::test
