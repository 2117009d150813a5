// SPDX-License-Identifier: Apache-2.0
// A listed model: its names are those of nn.Sequential, its shapes follow the list, and it computes
// what the built-in models of the same layers compute.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

std::vector<std::string> parameters_of(const Model& model) {
  std::vector<std::string> names;
  for (const LayerPtr& layer : model.layers())
    for (const ParameterSpec& each : layer->parameters())
      names.push_back(parameter_name(*layer, each.name));
  return names;
}

TEST(Sequential, NamesItsLayersByTheirPlace) {
  const auto model = make_model(
      "sequential",
      "{input: [3, 8, 8], layers: [{conv: {out: 4, bias: false}}, batch_norm, relu, {residual: "
      "{layers: [{conv: 8}], shortcut: [{conv: {out: 8, kernel: 1}}]}}, flatten, {linear: 10}]}");
  EXPECT_EQ(layer_names(*model), (std::vector<std::string>{"0", "1", "2", "3", "4", "5"}));
  EXPECT_EQ(
      parameters_of(*model),
      (std::vector<std::string>{"0.weight", "1.weight", "1.bias", "3.0.weight", "3.0.bias",
                                "3.shortcut.0.weight", "3.shortcut.0.bias", "5.weight", "5.bias"}));
}

TEST(Sequential, RepeatedLayersAreCutApart) {
  const auto model = make_model(
      "sequential",
      "{input: [5], layers: [{repeat: {times: 3, layers: [{linear: 5}, relu]}}, {linear: 2}]}");
  EXPECT_EQ(model->layers().size(), 7u);
  EXPECT_EQ(total_parameters(*model), 3 * (5 * 5 + 5) + 5 * 2 + 2);
}

TEST(Sequential, FollowsTheShapeOfImages) {
  EXPECT_EQ(boundary_shapes(*make_model(
                "sequential",
                "{input: [3, 9, 7], layers: [{conv: {out: 4, kernel: 3, stride: 2}}, {max_pool: "
                "{kernel: 3, stride: 2, padding: 1}}, {upsample: 2}, {average_pool: 2}, "
                "{average_pool_to: 1}, flatten, {linear: 6}]}")),
            (std::vector<Shape>{{4, 5, 4}, {4, 3, 2}, {4, 6, 4}, {4, 3, 2}, {4, 1, 1}, {4}, {6}}));
}

/// What a model computes with parameters that are drawn by their place.
at::Tensor output_of(const Model& model, at::Tensor x) {
  std::uint64_t seed = 1;
  for (const LayerPtr& layer : model.layers()) {
    const auto parameters = random_parameters(*layer, seed);
    if (!parameters.empty()) ++seed;
    x = apply(*layer, x, parameters, Pass{.training = false});
  }
  return x;
}

TEST(Sequential, ComputesWhatTheMlpOfTheSameLayersComputes) {
  const auto listed = make_model(
      "sequential", "{input: [12], layers: [{linear: 8}, tanh, {linear: 6}, tanh, {linear: 4}]}");
  const auto built_in = make_model("mlp", "{widths: [12, 8, 6, 4], activation: tanh}");
  const at::Tensor x = random({5, 12}, 3);
  EXPECT_TRUE(at::equal(output_of(*listed, x), output_of(*built_in, x)));
}

TEST(Sequential, IsATaskOfTextsWhereEveryTokenHasScores) {
  const std::string tokens = "{input: [6], vocabulary: 11, layers: [{embedding: 8}, ";
  EXPECT_EQ(make_model("sequential", tokens + "{linear: 11}]}")->task(), Task::Continue);
  EXPECT_EQ(make_model("sequential", tokens + "first_token, {linear: 2}]}")->task(),
            Task::Classify);
}

}  // namespace
}  // namespace pipewright::test
