// SPDX-License-Identifier: Apache-2.0
// What auxiliary heads add to the times of a simulation.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/experiment/reading.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/profiling.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright::test {
namespace {

constexpr double kFlops = 1e12, kBytes = 1e12;
constexpr int kSamples = 16, kClasses = 10;
constexpr int kWidths[] = {64, 64, 48, 32, kClasses};

Experiment experiment_with(const std::string& scheme) {
  return read_experiment(parse_yaml(
      concat("{dataset: {name: synthetic}, model: {name: mlp, widths: [64, 64, 48, 32, 10]}, "
             "loader: {batch_size: 16}, pipeline: {stages: 4}, optimizer: {name: sgd}, scheme: ",
             scheme, "}"),
      "f.yaml"));
}

SourcedCosts modelled(const std::string& scheme, double bandwidth) {
  Hardware hardware = ideal_hardware(4);
  hardware.rates = {.flops = kFlops, .bandwidth = bandwidth};
  const Experiment e = experiment_with(scheme);
  CostSource costs{CostFiles()};
  return costs.of(e, hardware);
}

TEST(HeadTimes, AreThoseOfALinearLayerWithItsWholeBackward) {
  const auto stages = modelled("{name: interlocking, width: 1}", 1e300).stages;
  for (std::size_t k = 0; k < 3; ++k) {
    const double forward = 2.0 * kSamples * kWidths[k + 1] * kClasses / kFlops;
    EXPECT_DOUBLE_EQ(stages[k].head, 3 * forward) << k;
  }
  EXPECT_EQ(stages[3].head, 0) << "the last stage has the model's own loss";
}

TEST(HeadTimes, AreInTheUpdatesOfTheirStages) {
  const auto with = modelled("{name: interlocking, width: 1}", kBytes).stages;
  const auto without = modelled("{name: gpipe}", kBytes).stages;
  for (std::size_t k = 0; k < 3; ++k) {  // SGD reads weights and gradients and writes weights
    const double head = 3.0 * 4 * (kWidths[k + 1] + 1) * kClasses / kBytes;
    EXPECT_NEAR(with[k].update - without[k].update, head, 1e-12 * head + 1e-22) << k;
    EXPECT_EQ(without[k].head, 0);
  }
  EXPECT_EQ(with[3].update, without[3].update);
}

TEST(HeadTimes, AreMeasuredUnderASchemeThatHasHeads) {
  const Experiment local = experiment_with("{name: interlocking, width: 1}");
  const Profile with = measure(local, {.repetitions = 1});
  const Profile without = measure(experiment_with("{name: gpipe}"), {.repetitions = 1});
  for (std::size_t layer = 0; layer < 3; ++layer) {
    EXPECT_GT(with.layers[layer].head, 0) << layer;
    EXPECT_GT(with.layers[layer].head_update, 0) << layer;
    EXPECT_EQ(without.layers[layer].head, 0) << layer;
  }
  EXPECT_EQ(with.layers[3].head, 0);
  EXPECT_EQ(with.layers[3].head_peak_adding, 0);
  EXPECT_EQ(without.layers[0].head_peak_adding, 0);
  EXPECT_EQ(with.layers[0].activation_bytes, without.layers[0].activation_bytes);

  const fixtures::TemporaryFolder folder;
  const auto stages_from = [&](const Profile& profile) {
    const std::filesystem::path file = folder / "profile.yaml";
    fixtures::put(file, to_yaml(profile_value(profile)));
    const Experiment e = experiment_with("{name: interlocking, width: 1}");
    CostSource costs{CostFiles{.profile = file}};
    return costs.of(e, ideal_hardware(4));
  };
  const SourcedCosts measured = stages_from(with), unmeasured = stages_from(without);
  EXPECT_EQ(measured.stages[1].head, with.layers[1].head);
  EXPECT_EQ(measured.stages[1].update, with.layers[1].update + with.layers[1].head_update);
  EXPECT_EQ(measured.from.find("auxiliary heads"), std::string::npos) << measured.from;
  EXPECT_EQ(measured.stages[1].head_memory.peak_bytes, with.layers[1].head_peak);
  EXPECT_EQ(measured.stages[1].head_memory.peak_adding_bytes, with.layers[1].head_peak_adding);
  EXPECT_GT(unmeasured.stages[1].head_memory.peak_adding_bytes, 0) << "counted";
  EXPECT_EQ(unmeasured.stages[1].head, 0);
  EXPECT_NE(unmeasured.from.find("auxiliary heads take no time"), std::string::npos)
      << unmeasured.from;
}

}  // namespace
}  // namespace pipewright::test
