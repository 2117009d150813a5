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

/// Of the layer of 8 inputs and 6 outputs.
WeightMoves moves(const std::string& scheme, const std::string& optimizer) {
  const Experiment experiment = experiment_with(scheme, optimizer);
  return weight_moves(experiment, experiment.layers).at(0);
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

TEST(WeightMoves, OfTablesAreTheirNumbers) {
  constexpr double kWeights = 6 * 8 + 6, kSides = 6 * 6 + 8 * 8;
  EXPECT_EQ(moves("{name: gpipe}", "{name: muon}").update, 5 + 2 * 6 / kWeights)
      << "the bias has a mean of squares, too";
  EXPECT_EQ(moves("{name: gpipe}", "{name: soap}").update, 7 + 2 * 2 * kSides / kWeights)
      << "Shampoo's matrix and a basis of either side";
}

TEST(WeightMoves, OfGroupsAreThoseOfTheOptimizerThatStepsTheLayer) {
  const Experiment experiment = experiment_with(
      "{name: spectrain}", "{name: adam, groups: [{match: '0.*', name: sgd, momentum: 0.9}]}");
  const std::vector<WeightMoves> all = weight_moves(experiment, experiment.layers);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].update, 5);
  EXPECT_EQ(all[0].prediction, 3);
  EXPECT_EQ(all[1].update, 7);
  EXPECT_EQ(all[1].prediction, 4);
}

/// An iteration of Newton and Schulz makes XXᵀ, its square and their product with X.
TEST(UpdateOperations, OfMuonAreFiveIterations) {
  const Profile profile =
      measure(experiment_with("{name: gpipe}", "{name: muon}"), {.device = at::kMeta});
  EXPECT_EQ(profile.layers[0].update_flops, 2 * 5 * (6 * 6 * 8 + 6 * 6 * 6 + 6 * 6 * 8));
  EXPECT_EQ(profile.layers[1].update_flops, 2 * 5 * (4 * 4 * 6 + 4 * 4 * 4 + 4 * 4 * 6));
}

/// A step goes into the basis and out of it, and adds to both of Shampoo's matrices.
TEST(UpdateOperations, OfSoapAreThoseOfAStepBetweenRenewals) {
  const Profile profile =
      measure(experiment_with("{name: gpipe}", "{name: soap}"), {.device = at::kMeta});
  EXPECT_EQ(profile.layers[0].update_flops, 2 * 3 * (6 * 6 * 8 + 6 * 8 * 8));
}

TEST(UpdateOperations, OfRulesElementByElementAreNone) {
  const Profile profile =
      measure(experiment_with("{name: gpipe}", "{name: adam}"), {.device = at::kMeta});
  EXPECT_EQ(profile.layers[0].update_flops, 0);
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
