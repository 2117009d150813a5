// SPDX-License-Identifier: Apache-2.0
// VGG-16 against the figures of the papers that cut it (counts from their own code).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

constexpr char kSpecTrain[] = "{head: classifier, batch_norm: false}";
constexpr char kPipeOptim[] = "{head: pool_linear, classes: 100}";

TEST(Vgg16, WithoutBatchNormHasSpecTrainsModules) {
  const auto model = make_model("vgg16", kSpecTrain);
  EXPECT_EQ(parameter_counts(*model),
            (std::vector<std::int64_t>{1'792, 36'928, 73'856, 147'584, 295'168, 590'080, 590'080,
                                       1'180'160, 2'359'808, 2'359'808, 2'359'808, 2'359'808,
                                       2'359'808, 102'764'544, 16'781'312, 40'970}));
  EXPECT_EQ(total_parameters(*model), 134'301'514);
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 32U);
}

TEST(Vgg16, WithoutBatchNormHasSpecTrainsCuts) {
  const auto model = make_model("vgg16", kSpecTrain);
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{260'160, 134'041'354}));
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{38'720, 516'608, 7'079'936, 126'666'250}));
  EXPECT_EQ(stage_parameters(*model, 16), parameter_counts(*model));
  EXPECT_EQ(model->published_balance(8), (Counts{1, 1, 1, 2, 2, 2, 3, 4}));
  EXPECT_TRUE(model->published_balance(3).empty());
  const auto shapes = boundary_shapes(*model);
  EXPECT_EQ(shapes[3], (Shape{128, 8, 8}));
  EXPECT_EQ(shapes[1], (Shape{64, 16, 16}));
  EXPECT_EQ(shapes[4], (Shape{256, 8, 8}));
  EXPECT_EQ(shapes[9], (Shape{512, 2, 2}));
}

TEST(Vgg16, WithBatchNormHasPipeOptimsParametersAndCuts) {
  const auto model = make_model("vgg16", kPipeOptim);
  EXPECT_EQ(total_parameters(*model), 14'774'436);
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{38'976, 1'698'816, 5'902'848, 7'133'796}));
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{1'737'792, 13'036'644}));
  EXPECT_TRUE(model->published_balance(16).empty());
}

TEST(Vgg16, HalvesTheMapAfterEachGroup) {
  const auto shapes = boundary_shapes(*make_model("vgg16", kPipeOptim));
  EXPECT_EQ(shapes, (std::vector<Shape>{{64, 32, 32},
                                        {64, 16, 16},
                                        {128, 16, 16},
                                        {128, 8, 8},
                                        {256, 8, 8},
                                        {256, 8, 8},
                                        {256, 4, 4},
                                        {512, 4, 4},
                                        {512, 4, 4},
                                        {512, 2, 2},
                                        {512, 2, 2},
                                        {512, 2, 2},
                                        {512, 1, 1},
                                        {100}}));
  const auto classifier = boundary_shapes(*make_model("vgg16", kSpecTrain));
  EXPECT_EQ(classifier[13], (Shape{4096}));
  EXPECT_EQ(classifier[14], (Shape{4096}));
  EXPECT_EQ(classifier[15], (Shape{10}));
}

TEST(Vgg16, UsesThePapersNames) {
  const auto model = make_model("vgg16", kSpecTrain);
  EXPECT_EQ(layer_names(*model),
            (std::vector<std::string>{"conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1",
                                      "conv3_2", "conv3_3", "conv4_1", "conv4_2", "conv4_3",
                                      "conv5_1", "conv5_2", "conv5_3", "fc1", "fc2", "fc3"}));
  EXPECT_EQ(parameter_names(*model->layers()[13]),
            (std::vector<std::string>{"fc1.weight", "fc1.bias"}));
  EXPECT_EQ(parameter_names(*make_model("vgg16")->layers()[0]),
            (std::vector<std::string>{"conv1_1.weight", "conv1_1.bias", "conv1_1.bn.weight",
                                      "conv1_1.bn.bias"}));
}

TEST(Vgg16, StartsItsLinearLayersAtOneHundredth) {
  for (const char* options : {kSpecTrain, kPipeOptim}) {
    const auto layers = make_model("vgg16", options)->layers();
    for (std::size_t i = 13; i < layers.size(); ++i) {
      const auto specs = layers[i]->parameters();
      EXPECT_EQ(static_cast<int>(specs[0].init.kind), static_cast<int>(Initializer::Kind::Normal));
      EXPECT_EQ(specs[0].init.a, 0.01);
      EXPECT_EQ(specs[1].init.a, 0);
    }
  }
}

TEST(Vgg16, ScalesWithWidthAndNeverBelowOneChannel) {
  const auto half = boundary_shapes(*make_model("vgg16", "{head: classifier, width: 0.5}"));
  EXPECT_EQ(half[0], (Shape{32, 32, 32}));
  EXPECT_EQ(half[13], (Shape{2048}));
  EXPECT_EQ(boundary_shapes(*make_model("vgg16", "{width: 0.001}"))[0], (Shape{1, 32, 32}));
}

TEST(Vgg16, HasAHeadAfterEveryLayer) {
  for (const char* options : {kSpecTrain, kPipeOptim}) {
    const auto model = make_model("vgg16", options);
    for (std::size_t i = 0; i < model->layers().size(); ++i)
      EXPECT_EQ(head_shape(*model, i), Shape{model->classes()}) << "layer " << i;
  }
  const auto model = make_model("vgg16", kPipeOptim);
  EXPECT_EQ(parameter_count(*model->head(3)), (128 + 1) * 100);
}

TEST(Vgg16, RefusesImagesItsPoolsWouldSwallow) {
  EXPECT_NE(model_problems("vgg16", "{size: 16}"), "");
}

}  // namespace
}  // namespace pipewright::test
