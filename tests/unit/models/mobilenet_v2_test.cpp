// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 against torchvision's counts and the cuts of split learning with compressed
// boundaries.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(MobileNetV2, HasTorchvisionsParameters) {
  const auto model = make_model("mobilenet_v2", "{classes: 10}");
  EXPECT_EQ(parameter_counts(*model),
            (Counts{928,     896,     5'136,   8'832,   10'000,  14'848,  14'848,
                    21'056,  54'272,  54'272,  54'272,  66'624,  118'272, 118'272,
                    155'264, 320'000, 320'000, 473'920, 412'160, 12'810}));
}

TEST(MobileNetV2, HasTheTotalsOfItsPapers) {
  EXPECT_EQ(total_parameters(*make_model("mobilenet_v2")), 3'504'872);
  EXPECT_EQ(total_parameters(*make_model("mobilenet_v2", "{classes: 10}")), 2'236'682);
  EXPECT_EQ(total_parameters(*make_model("mobilenet_v2", "{classes: 100}")), 2'351'972);
  EXPECT_EQ(total_parameters(*make_model("mobilenet_v2", "{classes: 101}")), 2'353'253);
}

TEST(MobileNetV2, HasTorchvisionsConvolutionsAndBuffers) {
  std::int64_t convolutions = 0, buffers = 0, norms = 0;
  for (const LayerPtr& layer : make_model("mobilenet_v2")->layers()) {
    for (const ParameterSpec& spec : layer->parameters()) convolutions += spec.shape.size() == 4;
    for (const BufferSpec& spec : layer->buffers()) buffers += spec.shape[0];
    norms += static_cast<std::int64_t>(layer->buffers().size()) / 2;
  }
  EXPECT_EQ(convolutions, 52);
  EXPECT_EQ(norms, 52);
  EXPECT_EQ(buffers + norms, 34'164) << "PyTorch's also count batches, one number per batch norm";
}

TEST(MobileNetV2, HasThePublishedShapes) {
  EXPECT_EQ(
      boundary_shapes(*make_model("mobilenet_v2")),
      (std::vector<Shape>{{32, 112, 112}, {16, 112, 112}, {24, 56, 56}, {24, 56, 56}, {32, 28, 28},
                          {32, 28, 28},   {32, 28, 28},   {64, 14, 14}, {64, 14, 14}, {64, 14, 14},
                          {64, 14, 14},   {96, 14, 14},   {96, 14, 14}, {96, 14, 14}, {160, 7, 7},
                          {160, 7, 7},    {160, 7, 7},    {320, 7, 7},  {1280, 7, 7}, {1000}}));
}

TEST(MobileNetV2, HasThePublishedCuts) {
  const auto model = make_model("mobilenet_v2", "{classes: 10}");
  const std::vector<Shape> first{{32, 112, 112}}, last{{1280, 7, 7}};
  EXPECT_EQ(stage_parameters(*model, 3), (Counts{928, 6'032 + 48'528 + 2'168'384, 12'810}));
  EXPECT_EQ(cut_shapes(*model, 3), (std::vector<std::vector<Shape>>{first, last}));
  EXPECT_EQ(stage_parameters(*model, 5), (Counts{928, 6'032, 48'528, 2'168'384, 12'810}));
  EXPECT_EQ(cut_shapes(*model, 5),
            (std::vector<std::vector<Shape>>{first, {{24, 56, 56}}, {{32, 28, 28}}, last}));
  EXPECT_TRUE(model->published_balance(2).empty());
}

TEST(MobileNetV2, UsesTorchvisionsNames) {
  const auto layers = make_model("mobilenet_v2")->layers();
  const auto names = [&](std::size_t layer) { return parameter_names(*layers[layer]); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(0), (Names{"features.0.0.weight", "features.0.1.weight", "features.0.1.bias"}));
  EXPECT_EQ(names(1), (Names{"features.1.conv.0.0.weight", "features.1.conv.0.1.weight",
                             "features.1.conv.0.1.bias", "features.1.conv.1.weight",
                             "features.1.conv.2.weight", "features.1.conv.2.bias"}));
  EXPECT_EQ(
      names(3),
      (Names{"features.3.conv.0.0.weight", "features.3.conv.0.1.weight", "features.3.conv.0.1.bias",
             "features.3.conv.1.0.weight", "features.3.conv.1.1.weight", "features.3.conv.1.1.bias",
             "features.3.conv.2.weight", "features.3.conv.3.weight", "features.3.conv.3.bias"}));
  EXPECT_EQ(names(18),
            (Names{"features.18.0.weight", "features.18.1.weight", "features.18.1.bias"}));
  EXPECT_EQ(names(19), (Names{"classifier.1.weight", "classifier.1.bias"}));
}

/// With the weight and bias of its last batch norm at 0, a block gives 0, or its input where that
/// is added.
TEST(MobileNetV2, AddsTheInputWhereTheShapeStays) {
  const auto layers = make_model("mobilenet_v2", "{width: 0.01}")->layers();
  std::set<std::size_t> residual;
  for (std::size_t i = 1; i < 18; ++i) {
    auto parameters = random_parameters(*layers[i], i);
    parameters[parameters.size() - 2].zero_();
    parameters.back().zero_();
    const auto specs = layers[i]->parameters();
    const std::int64_t in = specs[0].shape[i == 1 ? 0 : 1];
    const at::Tensor x = random({2, in, 4, 4}, 1), y = apply(*layers[i], x, parameters);
    if (at::equal(x, y)) {
      residual.insert(i);
    } else {
      EXPECT_TRUE(y.eq(0).all().item<bool>()) << "layer " << i;
    }
  }
  EXPECT_EQ(residual, (std::set<std::size_t>{3, 5, 6, 8, 9, 10, 12, 13, 15, 16}));
}

TEST(MobileNetV2, ActivatesBetweenZeroAndSix) {
  const auto layer = make_model("mobilenet_v2", "{width: 0.1}")->layers()[0];
  auto parameters = random_parameters(*layer, 1);
  parameters[1].fill_(20);
  const at::Tensor y = apply(*layer, random({2, 3, 8, 8}, 2), parameters);
  EXPECT_EQ(y.min().item<double>(), 0);
  EXPECT_EQ(y.max().item<double>(), 6);
}

TEST(MobileNetV2, StartsAsTorchvisionsDoes) {
  const auto layers = make_model("mobilenet_v2")->layers();
  const auto depthwise = layers[1]->parameters()[0];
  EXPECT_EQ(depthwise.shape, (Shape{32, 1, 3, 3}));
  EXPECT_DOUBLE_EQ(depthwise.init.a, std::sqrt(2.0 / (32 * 9)));
  const auto classifier = layers[19]->parameters();
  EXPECT_EQ(static_cast<int>(classifier[0].init.kind), static_cast<int>(Initializer::Kind::Normal));
  EXPECT_EQ(classifier[0].init.a, 0.01);
  EXPECT_EQ(classifier[1].init.a, 0);
  const auto fresh =
      make_model("mobilenet_v2", "{classifier_init: uniform}")->layers()[19]->parameters();
  for (const ParameterSpec& spec : fresh) {
    EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(Initializer::Kind::Uniform));
    EXPECT_DOUBLE_EQ(spec.init.a, 1 / std::sqrt(1280.0));
  }
}

TEST(MobileNetV2, AveragesTheWholeMapOrItsCorner) {
  const auto pooled = [](const char* pool) {
    const auto layer =
        make_model("mobilenet_v2", concat("{classes: 2, width: 0.001, pool: ", pool, "}"))
            ->layers()[19];
    at::Tensor x = at::zeros({1, 1, 7, 7}, at::kDouble);
    x[0][0][3][3] = 1;
    x[0][0][4][4] = 2;
    return apply(*layer, x, {at::ones({2, 1}, at::kDouble), at::zeros({2}, at::kDouble)},
                 {.training = false})[0][0]
        .item<double>();
  };
  EXPECT_DOUBLE_EQ(pooled("global"), 3.0 / 49);
  EXPECT_DOUBLE_EQ(pooled("top_left_4x4"), 1.0 / 16);
  EXPECT_EQ(model_problems("mobilenet_v2", "{pool: top_left_4x4, size: 97}"), "");
  for (const char* size : {"96", "225"})
    EXPECT_NE(model_problems("mobilenet_v2", concat("{pool: top_left_4x4, size: ", size, "}")), "");
}

TEST(MobileNetV2, HasAHeadAfterEveryLayer) {
  const auto model = make_model("mobilenet_v2", "{classes: 7, size: 32}");
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
}

}  // namespace
}  // namespace pipewright::test
