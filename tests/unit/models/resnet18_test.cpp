// ResNet-18 against the published counts of interlocking backpropagation and torchvision.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

TEST(ResNet18, HasThePublishedUnits) {
  const auto model = make_model("resnet18");
  EXPECT_EQ(parameter_counts(*model),
            (std::vector<std::int64_t>{1'856, 73'984, 73'984, 230'144, 295'424, 919'040, 1'180'672,
                                       3'673'088, 4'720'640, 5'130}));
  EXPECT_EQ(total_parameters(*model), 11'173'962);
}

TEST(ResNet18, WithTheImageNetStemIsTorchvisions) {
  const auto model = make_model("resnet18", "{stem: imagenet, classes: 1000, size: 224}");
  EXPECT_EQ(parameter_counts(*model)[0], 9'536);
  EXPECT_EQ(total_parameters(*model), 11'689'512);
  const auto shapes = boundary_shapes(*model);
  EXPECT_EQ(shapes[0], (Shape{64, 56, 56}));
  EXPECT_EQ(shapes[8], (Shape{512, 7, 7}));
}

TEST(ResNet18, HasThePublishedShapes) {
  EXPECT_EQ(boundary_shapes(*make_model("resnet18")), (std::vector<Shape>{{64, 32, 32},
                                                                          {64, 32, 32},
                                                                          {64, 32, 32},
                                                                          {128, 16, 16},
                                                                          {128, 16, 16},
                                                                          {256, 8, 8},
                                                                          {256, 8, 8},
                                                                          {512, 4, 4},
                                                                          {512, 4, 4},
                                                                          {10}}));
}

TEST(ResNet18, NamesItsLayersAndTheirParameters) {
  const auto model = make_model("resnet18");
  EXPECT_EQ(layer_names(*model),
            (std::vector<std::string>{"stem", "block1", "block2", "block3", "block4", "block5",
                                      "block6", "block7", "block8", "classifier"}));
  EXPECT_EQ(parameter_names(*model->layers()[3]),
            (std::vector<std::string>{"block3.conv1.weight", "block3.bn1.weight", "block3.bn1.bias",
                                      "block3.conv2.weight", "block3.bn2.weight", "block3.bn2.bias",
                                      "block3.shortcut.conv.weight", "block3.shortcut.bn.weight",
                                      "block3.shortcut.bn.bias"}));
  EXPECT_EQ(parameter_names(*model->layers()[9]),
            (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
}

TEST(ResNet18, HasThePublishedHeads) {
  const auto model = make_model("resnet18");
  EXPECT_EQ(parameter_count(*model->head(0)), 148'682);
  EXPECT_EQ(parameter_count(*model->head(2)), 148'682);
  EXPECT_EQ(parameter_count(*model->head(4)), 222'410);
  EXPECT_EQ(parameter_count(*model->head(6)), 369'866);
  EXPECT_EQ(parameter_count(*model->head(8)), 664'778);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(head_shape(*model, i), Shape{10}) << "layer " << i;
}

TEST(ResNet18, KeepsPyTorchsInitialisationOfItsClassifier) {
  const auto specs = make_model("resnet18")->layers().back()->parameters();
  EXPECT_EQ(static_cast<int>(specs[0].init.kind), static_cast<int>(Initializer::Kind::Uniform));
}

TEST(ResNet18, ScalesWithWidth) {
  const auto shapes = boundary_shapes(*make_model("resnet18", "{width: 0.25, channels: 1}"));
  EXPECT_EQ(shapes[0], (Shape{16, 32, 32}));
  EXPECT_EQ(shapes[8], (Shape{128, 4, 4}));
}

}  // namespace
}  // namespace pipewright::test
