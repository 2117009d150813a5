// SPDX-License-Identifier: Apache-2.0
// U-Net against torchgpipe's counts and layers. What it computes: golden_test.cpp.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

TEST(UNet, HasTorchgpipesLayersAndParametersAtEveryPublishedSize) {
  struct Case {
    std::int64_t convolutions, channels;
    std::size_t layers;
    std::int64_t parameters;
  };
  for (const Case& c : {Case{5, 64, 241, 232'687'328}, Case{6, 72, 285, 362'157'516},
                        Case{11, 128, 505, 2'213'834'176}, Case{24, 128, 1077, 4'993'859'008},
                        Case{24, 160, 1077, 7'802'903'600}, Case{48, 160, 2133, 15'822'206'000},
                        Case{2, 4, 109, 282'530}}) {
    const auto model = make_model(
        "unet", concat("{convolutions: ", c.convolutions, ", base_channels: ", c.channels, "}"));
    EXPECT_EQ(model->layers().size(), c.layers);
    EXPECT_EQ(total_parameters(*model), c.parameters) << c.convolutions << ", " << c.channels;
  }
}

/// Indices of the layers whose names end like that.
std::vector<std::size_t> ending(const std::vector<std::string>& names, const std::string& end) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].ends_with(end)) indices.push_back(i);
  return indices;
}

TEST(UNet, HasItsSkipsAtTorchgpipesIndices) {
  using Indices = std::vector<std::size_t>;
  const auto names = layer_names(*make_model("unet"));
  EXPECT_EQ(ending(names, ".stash"), (Indices{20, 42, 64, 86, 108}));
  EXPECT_EQ(ending(names, ".pool"), (Indices{21, 43, 65, 87, 109}));
  EXPECT_EQ(ending(names, ".upsample"), (Indices{130, 152, 174, 196, 218}));
  EXPECT_EQ(ending(names, ".concatenate"), (Indices{131, 153, 175, 197, 219}));
  EXPECT_EQ(names[240], "output");
  EXPECT_EQ((std::vector<std::string>{names.begin(), names.begin() + 5}),
            (std::vector<std::string>{"down1.conv1", "down1.dropout1", "down1.norm1", "down1.relu1",
                                      "down1.conv2"}));
}

TEST(UNet, CarriesEachLevelsMapToTheOtherSide) {
  const auto shapes =
      all_boundary_shapes(*make_model("unet",
                                      "{depth: 2, convolutions: 1, base_channels: 4, "
                                      "channels: 2, size: 8}"));
  const Shape first{4, 8, 8}, second{8, 4, 4};
  std::vector<std::vector<Shape>> expected;
  expected.insert(expected.end(), 4, {first});
  expected.push_back({first, first});
  expected.push_back({{4, 4, 4}, first});
  expected.insert(expected.end(), 4, {second, first});
  expected.push_back({second, first, second});
  expected.push_back({{8, 2, 2}, first, second});
  expected.insert(expected.end(), 4, {{8, 2, 2}, first, second});  // 8 channels: one convolution
  expected.push_back({second, first, second});
  expected.push_back({{16, 4, 4}, first});
  expected.insert(expected.end(), 4, {{4, 4, 4}, first});
  expected.push_back({first, first});
  expected.push_back({{8, 8, 8}});
  expected.insert(expected.end(), 4, {{2, 8, 8}});
  expected.push_back({{1, 8, 8}});
  EXPECT_EQ(shapes, expected);
}

TEST(UNet, GivesBackTheSizeOfImagesThatDoNotHalve) {
  const auto shapes = boundary_shapes(
      *make_model("unet", "{depth: 2, convolutions: 1, base_channels: 4, size: 11}"));
  EXPECT_EQ(shapes.back(), (Shape{1, 11, 11}));
}

TEST(UNet, DropsWholeChannelsInTrainingOnly) {
  const auto model = make_model("unet", "{depth: 1, convolutions: 1, base_channels: 64, size: 8}");
  const LayerPtr layer = model->layers()[1];
  const at::Tensor x = random({2, 64, 8, 8}, 1);
  EXPECT_TRUE(apply(*layer, x, {}, {.training = false}).is_same(x));
  const at::Tensor kept = apply(*layer, x, {}).ne(0).sum({2, 3});
  const auto dropped = (kept == 0).sum().item<std::int64_t>();
  EXPECT_EQ((kept == 64).sum().item<std::int64_t>(), 128 - dropped);
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, 40);
}

TEST(UNet, TrainsWithAFiniteGradientForEveryParameterAndHead) {
  const auto model =
      make_model("unet", "{depth: 2, convolutions: 2, base_channels: 4, channels: 1, size: 8}");
  const auto layers = model->layers();
  const auto leaves = [](const Layer& layer, std::uint64_t seed) {
    auto all = random_parameters(layer, seed);
    for (at::Tensor& parameter : all) parameter.set_requires_grad(true);
    return all;
  };
  const auto expect_gradients = [](const at::Tensor& y, const std::vector<at::Tensor>& of) {
    for (const at::Tensor& gradient :
         torch::autograd::grad({y}, of, {grad_output(y, 9)}, /*retain_graph=*/true))
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
  };
  Tensors x{random({3, 1, 8, 8}, 1)};
  std::vector<at::Tensor> parameters;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto own = leaves(*layers[i], i);
    x = layers[i]->forward_all(x, own, {}, {});
    parameters.insert(parameters.end(), own.begin(), own.end());
    const LayerPtr head = model->head(i);
    const auto of_head = leaves(*head, i);
    const at::Tensor y = head->forward(x[0], of_head, {}, {});
    EXPECT_EQ(y.sizes(), (Shape{3, 1, x[0].size(2), x[0].size(3)})) << layers[i]->name();
    expect_gradients(y, of_head);
  }
  ASSERT_EQ(x.size(), 1U);
  EXPECT_EQ(x[0].sizes(), (Shape{3, 1, 8, 8}));
  expect_gradients(x[0], parameters);
}

TEST(UNet, HasPublishedCutsOfTheDefaultModel) {
  const auto model = make_model("unet");
  EXPECT_EQ(model->published_balance(2), (std::vector<std::int64_t>{104, 137}));
  EXPECT_EQ(model->published_balance(4), (std::vector<std::int64_t>{30, 66, 84, 61}));
  EXPECT_EQ(model->published_balance(8),
            (std::vector<std::int64_t>{16, 27, 31, 44, 22, 57, 27, 17}));
  EXPECT_TRUE(model->published_balance(3).empty());
  EXPECT_TRUE(make_model("unet", "{convolutions: 6}")->published_balance(2).empty());
}

TEST(UNet, RefusesOddChannelsAndImagesThatVanish) {
  EXPECT_NE(model_problems("unet", "{base_channels: 5}").find("is 5; expected an even number"),
            std::string::npos);
  EXPECT_NE(model_problems("unet", "{size: 63}").find("is 63; expected at least 64"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
