// SPDX-License-Identifier: Apache-2.0
// AlexNet against torchvision's counts and PipeOptim's cut.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(AlexNet, HasTorchvisionsParameters) {
  const auto model = make_model("alexnet");
  EXPECT_EQ(total_parameters(*model), 61'100'840);
  EXPECT_EQ(
      parameter_counts(*model),
      (Counts{11 * 11 * 3 * 64 + 64, 25 * 64 * 192 + 192, 9 * 192 * 384 + 384, 9 * 384 * 256 + 256,
              9 * 256 * 256 + 256, 0, 9216 * 4096 + 4096, 4096 * 4096 + 4096, 4096 * 1000 + 1000}));
  EXPECT_EQ(layer_names(*model), (std::vector<std::string>{"conv1", "conv2", "conv3", "conv4",
                                                           "conv5", "pool5", "fc6", "fc7", "fc8"}));
  EXPECT_EQ(parameter_names(*model->layers()[6]),
            (std::vector<std::string>{"fc6.weight", "fc6.bias"}));
}

TEST(AlexNet, HasPipeOptimsCut) {
  const auto model = make_model("alexnet");
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{23'296, 307'392, 2'139'008, 58'631'144}));
  EXPECT_EQ(cut_shapes(*model, 4),
            (std::vector<std::vector<Shape>>{{{64, 27, 27}}, {{192, 13, 13}}, {{256, 13, 13}}}));
  EXPECT_TRUE(model->published_balance(2).empty());
}

TEST(AlexNet, HasTorchvisionsShapesAtAnySize) {
  for (const char* options : {"{classes: 10}", "{classes: 10, size: 63}"}) {
    const auto shapes = boundary_shapes(*make_model("alexnet", options));
    EXPECT_EQ(shapes[5], (Shape{256, 6, 6}));
    EXPECT_EQ(shapes[7], (Shape{4096}));
    EXPECT_EQ(shapes[8], (Shape{10}));
  }
  EXPECT_EQ(boundary_shapes(*make_model("alexnet", "{size: 63}"))[4], (Shape{256, 3, 3}));
  EXPECT_NE(model_problems("alexnet", "{size: 62}"), "");
}

TEST(AlexNet, PoolsThreeByThreeWithStrideTwo) {
  const at::Tensor x = random({2, 3, 13, 13}, 1);
  const LayerPtr last = make_model("alexnet")->layers()[5];
  EXPECT_TRUE(at::equal(apply(*last, x, {}), at::max_pool2d(x, {3, 3}, {2, 2})));
}

TEST(AlexNet, StartsAsPyTorchDoesByDefault) {
  const auto layers = make_model("alexnet")->layers();
  for (const LayerPtr& layer : layers)
    for (const ParameterSpec& spec : layer->parameters())
      EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(Initializer::Kind::Uniform));
  for (const ParameterSpec& spec : layers[1]->parameters())
    EXPECT_DOUBLE_EQ(spec.init.a, 1 / std::sqrt(64.0 * 25)) << spec.name;
  for (const ParameterSpec& spec : layers[6]->parameters())
    EXPECT_DOUBLE_EQ(spec.init.a, 1 / std::sqrt(9216.0)) << spec.name;
}

TEST(AlexNet, DropsHalfOfWhatItsFirstTwoLinearLayersSee) {
  const auto layers = make_model("alexnet", "{width: 0.02}")->layers();
  for (std::size_t i = 6; i < 9; ++i) {
    const auto parameters = random_parameters(*layers[i], 1);
    const at::Tensor x = random({2, parameters[0].size(1)}, 2);
    const auto of = [&](const Pass& pass) { return apply(*layers[i], x, parameters, pass); };
    EXPECT_EQ(!at::equal(of({.minibatch = 0}), of({.minibatch = 1})), i < 8) << layers[i]->name();
    EXPECT_TRUE(at::equal(of({.training = false}), of({.training = false, .minibatch = 1})));
  }
}

TEST(AlexNet, HasAHeadAfterEveryLayer) {
  const auto model = make_model("alexnet", "{classes: 7}");
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
}

}  // namespace
}  // namespace pipewright::test
