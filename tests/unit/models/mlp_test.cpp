// SPDX-License-Identifier: Apache-2.0
// The multilayer perceptron that outside checks rely on: names, shapes, and what it computes.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

TEST(Mlp, NamesItsParametersByLayer) {
  const auto model = make_model("mlp", "{widths: [12, 16, 10], activation: tanh}");
  const auto layers = model->layers();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(parameter_names(*layers[0]), (std::vector<std::string>{"0.weight", "0.bias"}));
  EXPECT_EQ(parameter_names(*layers[1]), (std::vector<std::string>{"1.weight", "1.bias"}));
  EXPECT_EQ(layers[0]->parameters()[0].shape, (Shape{16, 12}));
  EXPECT_EQ(layers[1]->parameters()[1].shape, (Shape{10}));
}

TEST(Mlp, HasTheDocumentedDefaults) {
  const auto model = make_model("mlp");
  EXPECT_EQ(boundary_shapes(*model), (std::vector<Shape>{{48}, {48}, {32}, {10}}));
  EXPECT_EQ(total_parameters(*model), 64 * 48 + 48 + 48 * 48 + 48 + 48 * 32 + 32 + 32 * 10 + 10);
  EXPECT_EQ(model->input_shape(), (Shape{64}));
  EXPECT_TRUE(model->flattens());
  EXPECT_EQ(model->classes(), 10);
}

/// f is what must come between the layers; nothing after the last.
void expect_between_layers(const std::string& activation,
                           const std::function<at::Tensor(const at::Tensor&)>& f) {
  const auto model = make_model("mlp", "{widths: [12, 5, 4, 3], activation: " + activation + "}");
  const at::Tensor x = random({6, 3, 2, 2}, 1);
  at::Tensor actual = x, expected = x.view({6, 12});
  const auto layers = model->layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto parameters = random_parameters(*layers[i], i);
    actual = apply(*layers[i], actual, parameters);
    expected = linear_reference(expected, parameters[0], parameters[1]);
    if (i + 1 < layers.size()) expected = f(expected);
  }
  EXPECT_LT(relative_error(actual, expected), kFloat64Relative) << activation;
}

TEST(Mlp, PutsTheActivationBetweenLayersOnly) {
  expect_between_layers("relu", relu_reference);
  expect_between_layers("tanh", [](const at::Tensor& z) { return 1 - 2 / ((2 * z).exp() + 1); });
  expect_between_layers("identity", [](const at::Tensor& z) { return z; });
}

TEST(Mlp, HeadsAreOneLinearFromTheirLayer) {
  const auto model = make_model("mlp", "{widths: [12, 16, 7, 10]}");
  for (const std::size_t layer : {0U, 1U}) {
    const LayerPtr head = model->head(layer);
    head->set_name("heads.1");
    EXPECT_EQ(parameter_names(*head), (std::vector<std::string>{"heads.1.weight", "heads.1.bias"}));
    EXPECT_EQ(head->parameters()[0].shape, (Shape{10, layer == 0 ? 16 : 7}));
    EXPECT_EQ(head_shape(*model, layer), (Shape{10}));
  }
}

TEST(Mlp, RecordsBadOptions) {
  EXPECT_NE(model_problems("mlp", "{widths: [12]}").find("has fewer than two numbers"),
            std::string::npos);
  EXPECT_NE(model_problems("mlp", "{widths: [12, 0, 3]}"), "");
  EXPECT_NE(model_problems("mlp", "{activation: gelu}"), "");
  EXPECT_NE(model_problems("mlp", "{head: conv}"), "");
}

}  // namespace
}  // namespace pipewright::test
