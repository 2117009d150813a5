// SPDX-License-Identifier: Apache-2.0
// GoogLeNet against the figures of SpecTrain's and PipeOptim's code and of torchvision.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

constexpr char kTorchvision[] = "{form: torchvision, classes: 1000, size: 224}";

TEST(GoogLeNet, HasSpecTrainsStages) {
  const auto model = make_model("googlenet");
  EXPECT_EQ(total_parameters(*model), 6'166'250);
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{171'312, 424'096, 848'952, 4'721'890}));
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{595'408, 5'570'842}));
  EXPECT_EQ(stage_norms(*model, 4), (Counts{8, 7, 14, 35}));
  EXPECT_EQ(stage_shapes(*model, 4),
            (std::vector<Shape>{{256, 32, 32}, {480, 16, 16}, {512, 16, 16}}));
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 258U);
}

TEST(GoogLeNet, HasPipeOptimsStages) {
  const auto model = make_model("googlenet", "{classes: 100}");
  EXPECT_EQ(total_parameters(*model), 6'258'500);
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{171'312, 424'096, 848'952, 4'814'140}));
}

TEST(GoogLeNet, OfTorchvisionsFormHasItsLayers) {
  const auto model = make_model("googlenet", kTorchvision);
  EXPECT_EQ(layer_names(*model),
            (std::vector<std::string>{"conv1", "conv2", "conv3", "inception3a", "inception3b",
                                      "inception4a", "inception4b", "inception4c", "inception4d",
                                      "inception4e", "inception5a", "inception5b", "fc"}));
  EXPECT_EQ(parameter_counts(*model),
            (Counts{9'536, 4'224, 110'976, 155'872, 340'224, 364'512, 425'232, 486'192, 573'312,
                    803'840, 978'944, 1'347'040, 1'025'000}));
  EXPECT_EQ(total_parameters(*model), 6'624'904);
  EXPECT_TRUE(model->published_balance(4).empty());
}

TEST(GoogLeNet, OfTorchvisionsFormRoundsItsPoolsUp) {
  EXPECT_EQ(boundary_shapes(*make_model("googlenet", kTorchvision)),
            (std::vector<Shape>{{64, 56, 56},
                                {64, 56, 56},
                                {192, 28, 28},
                                {256, 28, 28},
                                {480, 14, 14},
                                {512, 14, 14},
                                {512, 14, 14},
                                {512, 14, 14},
                                {528, 14, 14},
                                {832, 7, 7},
                                {832, 7, 7},
                                {1024, 7, 7},
                                {1000}}));
}

TEST(GoogLeNet, HasTorchvisionsNames) {
  using Names = std::vector<std::string>;
  const auto layers = make_model("googlenet", kTorchvision)->layers();
  EXPECT_EQ(parameter_names(*layers[0]),
            (Names{"conv1.conv.weight", "conv1.bn.weight", "conv1.bn.bias"}));
  for (const std::size_t layer : {3U, 4U}) {  // without and with a pool behind it
    const std::string block = layers[layer]->name();
    Names expected;
    for (const char* unit :
         {"branch1", "branch2.0", "branch2.1", "branch3.0", "branch3.1", "branch4.1"})
      for (const char* parameter : {".conv.weight", ".bn.weight", ".bn.bias"})
        expected.push_back(block + "." + unit + parameter);
    EXPECT_EQ(parameter_names(*layers[layer]), expected);
  }
  EXPECT_EQ(parameter_names(*layers[12]), (Names{"fc.weight", "fc.bias"}));
  const auto cifar = parameter_names(*make_model("googlenet")->layers()[1]);
  ASSERT_EQ(cifar.size(), 28U);
  EXPECT_EQ(cifar[21], "inception3a.branch3.2.conv.bias");
}

TEST(GoogLeNet, StartsItsWeightsAtOneHundredthInTorchvisionsForm) {
  const auto layers = make_model("googlenet", kTorchvision)->layers();
  using Kind = Initializer::Kind;
  for (const LayerPtr& layer : {layers[0], layers[5], layers[12]}) {
    const auto weight = layer->parameters()[0];
    EXPECT_EQ(static_cast<int>(weight.init.kind), static_cast<int>(Kind::Normal));
    EXPECT_EQ(weight.init.a, 0.01);
  }
  EXPECT_EQ(static_cast<int>(layers[12]->parameters()[1].init.kind),
            static_cast<int>(Kind::Uniform));
  const auto cifar = make_model("googlenet")->layers();
  EXPECT_DOUBLE_EQ(cifar[0]->parameters()[0].init.a, std::sqrt(2.0 / (192 * 9)));
  EXPECT_EQ(cifar[10]->parameters()[0].init.a, 0.01);
  EXPECT_EQ(cifar[10]->parameters()[1].init.a, 0);
}

TEST(GoogLeNet, ScalesWithWidth) {
  const auto shapes = boundary_shapes(*make_model("googlenet", "{width: 0.25, channels: 1}"));
  EXPECT_EQ(shapes[0], (Shape{48, 32, 32}));
  EXPECT_EQ(shapes[9], (Shape{256, 8, 8}));
}

TEST(GoogLeNet, HasAHeadAfterEveryLayer) {
  for (const char* options : {"{classes: 7}", "{classes: 7, form: torchvision}"}) {
    const auto model = make_model("googlenet", options);
    for (std::size_t i = 0; i < model->layers().size(); ++i)
      EXPECT_EQ(head_shape(*model, i), Shape{7}) << options << " layer " << i;
  }
}

TEST(GoogLeNet, RefusesImagesItsPoolsWouldSwallow) {
  EXPECT_NE(model_problems("googlenet", "{form: torchvision, size: 14}"), "");
  EXPECT_EQ(boundary_shapes(*make_model("googlenet", "{form: torchvision, size: 15}"))[11],
            (Shape{1024, 1, 1}));
}

}  // namespace
}  // namespace pipewright::test
