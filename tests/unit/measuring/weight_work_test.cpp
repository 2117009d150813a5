// SPDX-License-Identifier: Apache-2.0
// What optimizers move and start besides passes, counted by hand from their rules.
#include "core/measuring/weight_work.h"
#include "core/experiment/reading.h"

#include <gtest/gtest.h>

#include "core/measuring/profiling.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

Experiment experiment_with(const std::string& scheme, const std::string& optimizer) {
  return read_experiment(parse_yaml(
      concat("{name: x, dataset: {name: synthetic}, model: {name: mlp, widths: [8, 6, 4]}, "
             "pipeline: {stages: 2}, scheme: ",
             scheme, ", optimizer: ", optimizer, "}"),
      "x.yaml"));
}

WeightMoves moves(const std::string& scheme, const std::string& optimizer) {
  return weight_moves(experiment_with(scheme, optimizer));
}

TEST(WeightMoves, OfAnUpdateAreWeightsGradientAndState) {
  EXPECT_EQ(moves("{name: gpipe}", "{name: sgd}").update, 3) << "reads two, writes one";
  EXPECT_EQ(moves("{name: gpipe}", "{name: sgd, momentum: 0.9}").update, 5);
  EXPECT_EQ(moves("{name: gpipe}", "{name: adam}").update, 7);
  EXPECT_EQ(moves("{name: gpipe}", "{name: rmsprop}").update, 5);
}

TEST(WeightMoves, OfAPredictionAreTheWeightsWhatItReadsAndItself) {
  EXPECT_EQ(moves("{name: spectrain}", "{name: sgd, momentum: 0.9}").prediction, 3);
  EXPECT_EQ(moves("{name: spectrain}", "{name: adam}").prediction, 4);
  EXPECT_EQ(moves("{name: spectrain}", "{name: rmsprop}").prediction, 3)
      << "of its two tensors it reads the momentum";
  EXPECT_EQ(moves("{name: spectrain}", "{name: sgd}").update, 5)
      << "the velocity is kept for predictions";
}

TEST(WeightMoves, OfADriftAreNotFused) {
  const WeightMoves drift = moves("{name: pipemare}", "{name: sgd, momentum: 0.9}");
  EXPECT_EQ(drift.update, 5 + 10);
  EXPECT_EQ(drift.fused_prediction, drift.prediction);
}

TEST(Kernels, OfAForwardAreOperatorsThatComputeNotViews) {
  const Profile profile =
      measure(experiment_with("{name: gpipe}", "{name: sgd}"), {.device = at::kMeta});
  ASSERT_EQ(profile.layers.size(), 2u);
  EXPECT_EQ(profile.layers[0].kernels, 2) << "a product with a bias, and the activation";
  EXPECT_EQ(profile.layers[1].kernels, 1) << "a product with a bias; its transpose is a view";
}

/// Plain SGD: lr · gradient, weights − that, and a copy into the flat tensor. Both parameters have
/// them together, once their gradients have been copied side by side.
TEST(Kernels, OfAnUpdateAreThoseOfItsRuleForParametersSideBySide) {
  const Experiment experiment = experiment_with("{name: gpipe}", "{name: sgd}");
  const Profile profile = measure(experiment, {.device = at::kMeta});
  EXPECT_EQ(profile.layers[0].update_kernels, 2 + 3) << "a weight and a bias";
}

TEST(WeightTimes, AreMeasuredWithAProfile) {
  const Profile profile = measure(experiment_with("{name: gpipe}", "{name: sgd}"),
                                  {.device = at::kCPU, .repetitions = 3});
  for (const LayerCost& layer : profile.layers) {
    EXPECT_GT(layer.prediction, 0);
    EXPECT_GE(layer.fused_prediction, 0);
    EXPECT_GE(layer.new_version, 0);
  }
}

}  // namespace
}  // namespace pipewright::test
