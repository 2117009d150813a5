// SPDX-License-Identifier: Apache-2.0
// DenseNet-121 against the figures of SpecTrain's and PipeOptim's code and of torchvision.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

constexpr char kImageNet[] = "{stem: imagenet, classes: 1000, size: 224}";

TEST(DenseNet121, HasSpecTrainsStages) {
  const auto model = make_model("densenet121");
  EXPECT_EQ(total_parameters(*model), 6'956'298);
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{370'048, 1'051'776, 3'364'096, 2'170'378}));
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{370'048, 6'586'250}));
  EXPECT_EQ(stage_norms(*model, 4), (Counts{13, 25, 49, 33}));
  EXPECT_EQ(stage_shapes(*model, 4), (std::vector<Shape>{{128, 16, 16}, {256, 8, 8}, {512, 4, 4}}));
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 362U);
}

TEST(DenseNet121, HasPipeOptimsStages) {
  const auto model = make_model("densenet121", "{classes: 100}");
  EXPECT_EQ(total_parameters(*model), 7'048'548);
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{370'048, 1'051'776, 3'364'096, 2'262'628}));
}

TEST(DenseNet121, WithTheImageNetStemIsTorchvisions) {
  const auto model = make_model("densenet121", kImageNet);
  EXPECT_EQ(total_parameters(*model), 7'978'856);
  const auto shapes = boundary_shapes(*model);
  EXPECT_EQ(shapes[0], (Shape{64, 56, 56}));
  EXPECT_EQ(shapes[6], (Shape{256, 56, 56}));
  EXPECT_EQ(shapes[7], (Shape{128, 28, 28}));
  EXPECT_EQ(shapes[61], (Shape{1024, 7, 7}));
  EXPECT_TRUE(model->published_balance(4).empty());
}

TEST(DenseNet121, NamesItsParametersSoThatTorchvisionsFollow) {
  const auto model = make_model("densenet121", kImageNet);
  const auto layers = model->layers();
  using Names = std::vector<std::string>;
  ASSERT_EQ(layers.size(), 63U);
  EXPECT_EQ(parameter_names(*layers[0]),
            (Names{"stem.conv0.weight", "stem.norm0.weight", "stem.norm0.bias"}));
  EXPECT_EQ(parameter_names(*layers[6]),
            (Names{"denseblock1.denselayer6.norm1.weight", "denseblock1.denselayer6.norm1.bias",
                   "denseblock1.denselayer6.conv1.weight", "denseblock1.denselayer6.norm2.weight",
                   "denseblock1.denselayer6.norm2.bias", "denseblock1.denselayer6.conv2.weight"}));
  EXPECT_EQ(parameter_names(*layers[7]),
            (Names{"transition1.norm.weight", "transition1.norm.bias", "transition1.conv.weight"}));
  EXPECT_EQ(layers[61]->name(), "denseblock4.denselayer16");
  EXPECT_EQ(parameter_names(*layers[62]), (Names{"classifier.norm5.weight", "classifier.norm5.bias",
                                                 "classifier.weight", "classifier.bias"}));
}

/// Which channels of a dense layer's output are its input: "first", "last" or "neither".
std::string input_channels(const std::string& options) {
  const LayerPtr layer = make_model("densenet121", options)->layers()[1];
  const at::Tensor x = random({2, 64, 3, 3}, 1);
  const at::Tensor y = apply(*layer, x, random_parameters(*layer, 2));
  EXPECT_EQ(y.sizes(), (Shape{2, 96, 3, 3}));
  if (at::equal(y.narrow(1, 0, 64), x)) return "first";
  return at::equal(y.narrow(1, 32, 64), x) ? "last" : "neither";
}

TEST(DenseNet121, ConcatenatesInTheOrderOfEachSourceOrAsTold) {
  EXPECT_EQ(input_channels("{}"), "last");
  EXPECT_EQ(input_channels("{stem: imagenet}"), "first");
  EXPECT_EQ(input_channels("{concatenate: old_first}"), "first");
  EXPECT_EQ(input_channels("{stem: imagenet, concatenate: new_first}"), "last");
}

void expect_normal(const ParameterSpec& spec, double std) {
  EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(Initializer::Kind::Normal));
  EXPECT_DOUBLE_EQ(spec.init.a, std) << spec.name;
}

TEST(DenseNet121, StartsAsSpecTrainsOrAsTorchvisions) {
  const auto cifar = make_model("densenet121")->layers();
  expect_normal(cifar[1]->parameters()[5], std::sqrt(2.0 / (32 * 9)));  // Kaiming, fan out
  expect_normal(cifar[62]->parameters()[2], 0.01);
  const auto imagenet = make_model("densenet121", kImageNet)->layers();
  expect_normal(imagenet[1]->parameters()[5], std::sqrt(2.0 / (128 * 9)));  // Kaiming, fan in
  const auto classifier = imagenet[62]->parameters();
  EXPECT_EQ(static_cast<int>(classifier[2].init.kind),
            static_cast<int>(Initializer::Kind::Uniform));
  EXPECT_EQ(static_cast<int>(classifier[3].init.kind),
            static_cast<int>(Initializer::Kind::Constant));
}

TEST(DenseNet121, ScalesWithWidth) {
  const auto shapes = boundary_shapes(*make_model("densenet121", "{width: 0.25, channels: 1}"));
  EXPECT_EQ(shapes[0], (Shape{16, 32, 32}));
  EXPECT_EQ(shapes[61], (Shape{256, 4, 4}));
}

TEST(DenseNet121, HasAHeadAfterEveryLayer) {
  const auto model = make_model("densenet121", "{classes: 7}");
  for (std::size_t i = 0; i < 63; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
  EXPECT_EQ(parameter_count(*model->head(7)), (128 + 1) * 7);
}

TEST(DenseNet121, RefusesImagesItsPoolsWouldSwallow) {
  EXPECT_NE(model_problems("densenet121", "{size: 7}"), "");
  EXPECT_EQ(model_problems("densenet121", "{size: 8}"), "");
  const std::string problem = model_problems("densenet121", "{stem: imagenet, size: 28}");
  EXPECT_NE(problem.find("is 28, too small for stem: imagenet, which needs at least 29"),
            std::string::npos)
      << problem;
  EXPECT_EQ(boundary_shapes(*make_model("densenet121", "{stem: imagenet, size: 29}"))[61],
            (Shape{1024, 1, 1}));
}

}  // namespace
}  // namespace pipewright::test
