// SPDX-License-Identifier: Apache-2.0
// The seconds of a step that a public contest over slow links publishes
// (PluralisResearch/ProtocolNanoGPT, 2026-09-24), and those that a simulation of its meter by
// others gives, against experiments/hardware/wan-200mbps.yaml.
#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/config/value.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

constexpr int kStages = 8;
constexpr double kTokens = 512 * 1024;  // of a step
constexpr double kWidth = 1024, kVocabulary = 50304;

Hardware contest_machine() {
  Problems problems;
  Hardware machine =
      read_hardware(load_yaml(source_dir() / "experiments/hardware/wan-200mbps.yaml"), problems);
  EXPECT_TRUE(problems.errors().empty());
  return machine;
}

/// Seconds of a step of 1F1B in so many micro-batches, where a token is so many bytes on each way.
/// A device computes at `flops` a second, 2 operations for each weight and token of a forward and 4
/// for those of a backward; 0: in no time.
double seconds_of_step(int microbatches, std::int64_t bytes_of_token, double flops = 0) {
  const double tokens = kTokens / microbatches;
  const auto bytes = static_cast<std::int64_t>(tokens) * bytes_of_token;
  std::vector<StageCost> costs(kStages, {.input_bytes = bytes, .output_bytes = bytes});
  for (int stage = 0; stage < kStages && flops > 0; ++stage) {
    const double output = stage == kStages - 1 ? kVocabulary * kWidth : 0;
    const double weights = 12 * kWidth * kWidth + output;
    costs[as_size(stage)].forward = 2 * weights * tokens / flops;
    costs[as_size(stage)].backward = 2 * costs[as_size(stage)].forward;
  }
  const Schedule schedule =
      pipeline_schedule({.stages = kStages, .microbatches = microbatches}, {.flush = true});
  return simulate(prove(schedule), costs, contest_machine()).makespan;
}

TEST(SlowLinks, TakeThePublishedSecondsOfAStep) {
  const double flops = 0.5 * 989e12;  // half of an H100's peak in bfloat16: an assumption
  EXPECT_NEAR(seconds_of_step(64, 2048, flops), 100.475, 0.01 * 100.475);
  EXPECT_NEAR(seconds_of_step(32, 322, flops), 19.889, 0.03 * 19.889);
}

TEST(SlowLinks, TakeTheSecondsOfAnotherSimulationOfTheMeter) {
  struct Row {
    int microbatches;
    std::int64_t bytes;
    double seconds;  // to its last digit
  };
  for (const Row& row : {Row{256, 2048, 113.9},
                         {128, 2048, 102.9},
                         {64, 2048, 100.2},
                         {32, 2048, 104.4},
                         {16, 2048, 117.6},
                         {8, 2048, 146.3},
                         {128, 322, 27.4},
                         {64, 322, 21.6},
                         {32, 322, 19.6},
                         {16, 322, 20.3},
                         {8, 322, 24.1}})
    EXPECT_NEAR(seconds_of_step(row.microbatches, row.bytes), row.seconds, 0.05)
        << row.microbatches << " micro-batches of " << row.bytes << " bytes a token";
}

TEST(SlowLinks, AreOccupiedUntilAMessageHasArrived) {
  Hardware machine = ideal_hardware(3);
  machine.within = {.latency = 1, .bandwidth = 10, .latency_occupies = true};
  machine.receives = Receives::ProgramOrder;
  std::vector<StageCost> costs(3, {.input_bytes = 20, .output_bytes = 20});
  const Schedule schedule =
      pipeline_schedule({.stages = 3, .microbatches = 2}, {.fill_drain = true});
  // Each message takes 2 + 1 s. Worker 1 gets F0 at 3, F1 at 6, B0 from worker 2, which gets F0 at
  // 6 and F1 at 9 and computes in no time: its gradients leave at 9, and arrive at 12 and 15.
  const Simulation simulation = simulate(prove(schedule), costs, machine);
  EXPECT_EQ(simulation.spans[1][0].begin, 3);
  EXPECT_EQ(simulation.spans[1][1].begin, 6);
  EXPECT_EQ(simulation.spans[2][0].begin, 6);
  EXPECT_EQ(simulation.spans[2][1].begin, 9);
  EXPECT_EQ(simulation.spans[1][2].begin, 12);
  EXPECT_EQ(simulation.spans[1][3].begin, 15);
  EXPECT_EQ(simulation.makespan, 18);
  machine.within.latency_occupies = false;
  EXPECT_EQ(simulate(prove(schedule), costs, machine).makespan, 16);
}

}  // namespace
}  // namespace pipewright
