// SPDX-License-Identifier: Apache-2.0
// Inception-v3 against the figures of PipeOptim's code and of torchvision.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

TEST(InceptionV3, HasTorchvisionsLayers) {
  const auto model = make_model("inception_v3");
  EXPECT_EQ(
      layer_names(*model),
      (std::vector<std::string>{"Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "maxpool1",
                                "Conv2d_3b_1x1", "Conv2d_4a_3x3", "maxpool2", "Mixed_5b",
                                "Mixed_5c", "Mixed_5d", "Mixed_6a", "Mixed_6b", "Mixed_6c",
                                "Mixed_6d", "Mixed_6e", "Mixed_7a", "Mixed_7b", "Mixed_7c", "fc"}));
  EXPECT_EQ(parameter_counts(*model),
            (Counts{928, 9'280, 18'560, 0, 5'280, 138'624, 0, 255'904, 277'472, 285'152, 1'153'280,
                    1'297'408, 1'691'008, 1'691'008, 2'141'952, 1'698'304, 5'044'608, 6'076'800,
                    2'049'000}));
  EXPECT_EQ(total_parameters(*model), 23'834'568);
  EXPECT_EQ(total_parameters(*make_model("inception_v3", "{classes: 200}")), 22'195'368);
}

TEST(InceptionV3, HasPipeOptimsStages) {
  const auto model = make_model("inception_v3");
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{172'672, 1'971'808, 4'679'424, 17'010'664}));
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{2'144'480, 21'690'088}));
  EXPECT_TRUE(model->published_balance(8).empty());
}

TEST(InceptionV3, SendsPipeOptimsShapes) {
  using Shapes = std::vector<Shape>;
  EXPECT_EQ(stage_shapes(*make_model("inception_v3"), 4),
            (Shapes{{192, 35, 35}, {768, 17, 17}, {768, 17, 17}}));
  EXPECT_EQ(stage_shapes(*make_model("inception_v3", "{size: 224}"), 4),
            (Shapes{{192, 25, 25}, {768, 12, 12}, {768, 12, 12}}));
}

TEST(InceptionV3, HasThePapersMaps) {
  const auto shapes = boundary_shapes(*make_model("inception_v3"));
  EXPECT_EQ(shapes[0], (Shape{32, 149, 149}));
  EXPECT_EQ(shapes[1], (Shape{32, 147, 147}));
  EXPECT_EQ(shapes[2], (Shape{64, 147, 147}));
  EXPECT_EQ(shapes[3], (Shape{64, 73, 73}));
  EXPECT_EQ(shapes[7], (Shape{256, 35, 35}));
  EXPECT_EQ(shapes[9], (Shape{288, 35, 35}));
  EXPECT_EQ(shapes[15], (Shape{1280, 8, 8}));
  EXPECT_EQ(shapes[17], (Shape{2048, 8, 8}));
  EXPECT_EQ(shapes[18], (Shape{1000}));
}

TEST(InceptionV3, TakesImagesOf75AndMore) {
  EXPECT_EQ(boundary_shapes(*make_model("inception_v3", "{size: 75}"))[17], (Shape{2048, 1, 1}));
  EXPECT_NE(model_problems("inception_v3", "{size: 74}"), "");
}

/// The units of a block, from the names of its parameters, which must be each unit's three.
std::vector<std::string> units(const Layer& block) {
  std::vector<std::string> all;
  const auto specs = block.parameters();
  for (std::size_t i = 0; i + 2 < specs.size(); i += 3) {
    const std::string name = specs[i].name.substr(0, specs[i].name.find('.'));
    EXPECT_EQ(specs[i].name, name + ".conv.weight");
    EXPECT_EQ(specs[i + 1].name, name + ".bn.weight");
    EXPECT_EQ(specs[i + 2].name, name + ".bn.bias");
    all.push_back(name);
  }
  return all;
}

TEST(InceptionV3, HasTorchvisionsNames) {
  using Names = std::vector<std::string>;
  const auto layers = make_model("inception_v3")->layers();
  EXPECT_EQ(
      parameter_names(*layers[0]),
      (Names{"Conv2d_1a_3x3.conv.weight", "Conv2d_1a_3x3.bn.weight", "Conv2d_1a_3x3.bn.bias"}));
  EXPECT_EQ(units(*layers[7]), (Names{"branch1x1", "branch5x5_1", "branch5x5_2", "branch3x3dbl_1",
                                      "branch3x3dbl_2", "branch3x3dbl_3", "branch_pool"}));
  EXPECT_EQ(units(*layers[10]),
            (Names{"branch3x3", "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"}));
  EXPECT_EQ(units(*layers[11]), (Names{"branch1x1", "branch7x7_1", "branch7x7_2", "branch7x7_3",
                                       "branch7x7dbl_1", "branch7x7dbl_2", "branch7x7dbl_3",
                                       "branch7x7dbl_4", "branch7x7dbl_5", "branch_pool"}));
  EXPECT_EQ(units(*layers[15]), (Names{"branch3x3_1", "branch3x3_2", "branch7x7x3_1",
                                       "branch7x7x3_2", "branch7x7x3_3", "branch7x7x3_4"}));
  EXPECT_EQ(units(*layers[16]),
            (Names{"branch1x1", "branch3x3_1", "branch3x3_2a", "branch3x3_2b", "branch3x3dbl_1",
                   "branch3x3dbl_2", "branch3x3dbl_3a", "branch3x3dbl_3b", "branch_pool"}));
  EXPECT_EQ(parameter_names(*layers[18]), (Names{"fc.weight", "fc.bias"}));
}

TEST(InceptionV3, HasItsLongKernelsInTorchvisionsOrder) {
  std::vector<Shape> kernels;
  for (const ParameterSpec& spec : make_model("inception_v3")->layers()[11]->parameters())
    if (spec.shape.size() == 4) kernels.push_back({spec.shape[2], spec.shape[3]});
  EXPECT_EQ(kernels,
            (std::vector<Shape>{
                {1, 1}, {1, 1}, {1, 7}, {7, 1}, {1, 1}, {7, 1}, {1, 7}, {7, 1}, {1, 7}, {1, 1}}));
}

TEST(InceptionV3, StartsEveryWeightTruncatedNormal) {
  using Kind = Initializer::Kind;
  for (const LayerPtr& layer : make_model("inception_v3")->layers())
    for (const ParameterSpec& spec : layer->parameters())
      if (spec.shape.size() > 1) {
        EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(Kind::TruncatedNormal));
        EXPECT_EQ(spec.init.a, 0.1);
      }
  const auto fc = make_model("inception_v3")->layers().back()->parameters();
  EXPECT_EQ(static_cast<int>(fc[1].init.kind), static_cast<int>(Kind::Uniform));
}

TEST(InceptionV3, ScalesWithWidth) {
  const auto shapes = boundary_shapes(*make_model("inception_v3", "{width: 0.25, channels: 1}"));
  EXPECT_EQ(shapes[0], (Shape{8, 149, 149}));
  EXPECT_EQ(shapes[17], (Shape{512, 8, 8}));
}

TEST(InceptionV3, HasAHeadAfterEveryLayer) {
  const auto model = make_model("inception_v3", "{classes: 7, size: 75}");
  for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
}

}  // namespace
}  // namespace pipewright::test
