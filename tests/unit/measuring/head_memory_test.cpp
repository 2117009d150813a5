// SPDX-License-Identifier: Apache-2.0
// What auxiliary heads add to the memory of a simulation.
#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/experiment/reading.h"
#include "core/measuring/steady_simulation.h"

namespace pipewright::test {
namespace {

Simulation modelled(const std::string& scheme) {
  CostSource costs{CostFiles()};
  Hardware hardware = ideal_hardware(4);
  hardware.rates = {.flops = 1e12, .bandwidth = 1e12};
  const Value document = parse_yaml(
      concat("{dataset: {name: synthetic}, model: {name: mlp, widths: [64, 64, 48, 32, 10]}, "
             "pipeline: {stages: 4}, optimizer: {name: sgd, momentum: 0.9}, scheme: ",
             scheme, "}"),
      "f.yaml");
  return SteadySimulator(read_experiment(document), costs).on(hardware).simulation;
}

/// Weights, their gradient and their momentum, of a linear layer and of the head behind it, in
/// bytes of float32.
constexpr std::int64_t state(std::int64_t in, std::int64_t out, std::int64_t head_classes) {
  return 3 * 4 * ((in + 1) * out + (head_classes > 0 ? (out + 1) * head_classes : 0));
}

TEST(HeadMemory, IsInTheStateOfEveryStageWithALossOfItsOwn) {
  const Simulation simulation = modelled("{name: interlocking, width: 2}");
  const std::int64_t expected[] = {state(64, 64, 10), state(64, 48, 10), state(48, 32, 10),
                                   state(32, 10, 0)};
  for (std::size_t worker = 0; worker < 4; ++worker)
    EXPECT_EQ(simulation.workers[worker].most_state, expected[worker]) << worker;
}

TEST(HeadMemory, IsOnlyThatOfHeadsThatAreTrained) {
  const Simulation simulation =
      modelled("{name: interlocking, width: 2, train_unused_heads: false}");
  EXPECT_EQ(simulation.workers[0].most_state, state(64, 64, 0))
      << "no stage learns from a loss behind stage 0";
  EXPECT_EQ(simulation.workers[1].most_state, state(64, 48, 10));
}

TEST(HeadMemory, IsNoneWithoutHeads) {
  const Simulation simulation = modelled("{name: gpipe}");
  EXPECT_EQ(simulation.workers[1].most_state, state(64, 48, 0));
}

}  // namespace
}  // namespace pipewright::test
