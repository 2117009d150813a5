// SPDX-License-Identifier: Apache-2.0
// ResNets against the counts and cuts of the papers that train them (from their own code) and of
// torchvision.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

using Counts = std::vector<std::int64_t>;
using Cuts = std::vector<std::vector<Shape>>;

Counts sums(const Model& model, const Counts& balance) {
  const auto counts = parameter_counts(model);
  Counts all;
  auto at = counts.begin();
  for (const std::int64_t layers : balance) {
    all.push_back(std::accumulate(at, at + layers, std::int64_t{0}));
    at += layers;
  }
  EXPECT_EQ(at, counts.end());
  return all;
}

std::int64_t batch_norms(const Layer& layer) {
  return static_cast<std::int64_t>(layer.buffers().size()) / 2;
}

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

TEST(ResNet34, HasInterlockingsUnits) {
  const auto model = make_model("resnet34");
  Counts expected{1'856};
  for (const auto& [blocks, parameters] : std::vector<std::pair<int, std::int64_t>>{{3, 73'984},
                                                                                    {1, 230'144},
                                                                                    {3, 295'424},
                                                                                    {1, 919'040},
                                                                                    {5, 1'180'672},
                                                                                    {1, 3'673'088},
                                                                                    {2, 4'720'640},
                                                                                    {1, 5'130}})
    expected.insert(expected.end(), static_cast<std::size_t>(blocks), parameters);
  EXPECT_EQ(parameter_counts(*model), expected);
  EXPECT_EQ(total_parameters(*model), 21'282'122);
  EXPECT_EQ(total_parameters(*make_model("resnet34", "{classes: 100}")), 21'328'292);
  EXPECT_EQ(total_parameters(*make_model("resnet34", "{stem: imagenet, classes: 1000}")),
            21'797'672);
}

TEST(ResNet34, HasInterlockingsCuts) {
  for (const char* options : {"{}", "{cut: layers}"}) {
    const auto model = make_model("resnet34", options);
    EXPECT_EQ(stage_parameters(*model, 4), (Counts{453'952, 1'805'312, 4'722'688, 14'300'170}));
    EXPECT_EQ(cut_shapes(*model, 4), (Cuts{{{128, 16, 16}}, {{256, 8, 8}}, {{256, 8, 8}}}));
    EXPECT_TRUE(model->published_balance(2).empty());
  }
  const auto model = make_model("resnet34");
  EXPECT_EQ(sums(*model, {4, 4, 6, 4}), (Counts{223'808, 1'116'416, 6'822'400, 13'119'498}));
  EXPECT_EQ(sums(*model, {1, 1, 1, 15}), (Counts{1'856, 73'984, 73'984, 21'132'298}));
}

TEST(ResNet50, HasInterlockingsUnits) {
  const std::string blocks = "stem: cifar, cut: blocks";
  Counts expected{1'856};
  for (const auto& [count, parameters] : std::vector<std::pair<int, std::int64_t>>{{1, 75'008},
                                                                                   {2, 70'400},
                                                                                   {1, 379'392},
                                                                                   {3, 280'064},
                                                                                   {1, 1'512'448},
                                                                                   {5, 1'117'184},
                                                                                   {1, 6'039'552},
                                                                                   {2, 4'462'592},
                                                                                   {1, 20'490}})
    expected.insert(expected.end(), static_cast<std::size_t>(count), parameters);
  const auto model = make_model("resnet50", "{" + blocks + "}");
  EXPECT_EQ(parameter_counts(*model), expected);
  EXPECT_EQ(total_parameters(*model), 23'520'842);
  EXPECT_EQ(total_parameters(*make_model("resnet50", "{classes: 100, " + blocks + "}")),
            23'705'252);
  EXPECT_EQ(boundary_shapes(*model)[1], (Shape{256, 32, 32}));
  EXPECT_EQ(boundary_shapes(*model)[16], (Shape{2048, 4, 4}));
  EXPECT_EQ(parameter_count(*model->head(8)), 1'254'602);
  EXPECT_EQ(parameter_count(*model->head(16)), 2'434'250);
  EXPECT_TRUE(model->published_balance(4).empty()) << "SpecTrain cuts within blocks";
}

TEST(ResNet50, IsSpecTrainsAndTorchvisions) {
  const auto model = make_model("resnet50");
  EXPECT_EQ(total_parameters(*model), 23'528'522);
  EXPECT_EQ(total_parameters(*make_model("resnet50", "{classes: 1000}")), 25'557'032);
  std::size_t tensors = 0;
  std::int64_t norms = 0;
  for (const LayerPtr& layer : model->layers()) {
    tensors += layer->parameters().size();
    norms += batch_norms(*layer);
  }
  EXPECT_EQ(tensors, 161U);
  EXPECT_EQ(norms, 53);
  EXPECT_EQ(static_cast<int>(model->layers().back()->parameters()[0].init.kind),
            static_cast<int>(Initializer::Kind::Uniform));
}

TEST(ResNet50, HasSpecTrainsCutsOfTwoTensors) {
  const auto model = make_model("resnet50");
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{11'427'904, 12'100'618}));
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{8'278'592, 3'149'312, 6'564'864, 5'535'754}));
  const std::vector<Shape> first{{256, 2, 2}, {1024, 2, 2}}, second{{512, 1, 1}, {1024, 2, 2}},
      third{{512, 1, 1}, {2048, 1, 1}};
  EXPECT_EQ(cut_shapes(*model, 4), (Cuts{first, second, third}));
  EXPECT_EQ(cut_shapes(*model, 2), Cuts{second});
  const auto layers = model->layers();
  Counts norms;
  std::size_t at = 0;
  for (const std::int64_t count : model->published_balance(4)) {
    norms.push_back(0);
    for (std::int64_t i = 0; i < count; ++i) norms.back() += batch_norms(*layers[at++]);
  }
  EXPECT_EQ(norms, (Counts{41, 3, 5, 4}));
}

TEST(ResNet50, IsCutAtTheSamePlacesWithTheCifarStem) {
  const auto model = make_model("resnet50", "{stem: cifar}");
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{8'270'912, 3'149'312, 6'564'864, 5'535'754}));
}

TEST(ResNet101, HasTheParametersOfItsPaper) {
  EXPECT_EQ(total_parameters(*make_model("resnet101", "{classes: 1000}")), 44'549'160);
  EXPECT_EQ(total_parameters(*make_model("resnet101", "{classes: 200}")), 42'909'960);
  EXPECT_EQ(total_parameters(*make_model("resnet101")), 42'520'650);
  const auto model = make_model("resnet101", "{stem: cifar, cut: blocks}");
  EXPECT_EQ(total_parameters(*model), 42'512'970);
  EXPECT_EQ(model->layers().size(), 35U);
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 314U);
}

TEST(ResNet101, HasTorchgpipes370Layers) {
  const auto layers = make_model("resnet101", "{classes: 1000, size: 224}")->layers();
  ASSERT_EQ(layers.size(), 370U);
  Counts of_block;
  for (std::size_t i = 4; i < 15; ++i) of_block.push_back(parameter_count(*layers[i]));
  EXPECT_EQ(of_block,
            (Counts{0, 64 * 64, 128, 0, 9 * 64 * 64, 128, 0, 64 * 256, 512, 64 * 256 + 512, 0}));
  std::int64_t convolutions = 0, norms = 0, buffers = 0;
  for (const LayerPtr& layer : layers) {
    for (const ParameterSpec& spec : layer->parameters()) convolutions += spec.shape.size() == 4;
    norms += batch_norms(*layer);
    for (const BufferSpec& spec : layer->buffers()) buffers += spec.shape[0];
  }
  EXPECT_EQ(convolutions, 104);  // 100 layers and 4 within sums
  EXPECT_EQ(norms, 104);
  EXPECT_EQ(buffers + norms, 105'448) << "PyTorch's also count batches, one number per batch norm";
  for (const Counts& balance : {Counts{135, 235}, Counts{140, 230}, Counts{44, 92, 124, 110},
                                Counts{26, 22, 33, 44, 44, 66, 66, 69}})
    EXPECT_EQ(std::accumulate(balance.begin(), balance.end(), std::int64_t{0}), 370);
}

TEST(ResNet101, HasPipeOptimsCuts) {
  for (const char* options :
       {"{classes: 1000, size: 224}", "{classes: 1000, size: 224, cut: blocks}"}) {
    const auto model = make_model("resnet101", options);
    EXPECT_EQ(stage_parameters(*model, 4), (Counts{225'344, 4'966'400, 11'171'840, 28'185'576}));
    EXPECT_EQ(cut_shapes(*model, 4), (Cuts{{{256, 56, 56}}, {{1024, 14, 14}}, {{1024, 14, 14}}}));
  }
}

TEST(ResNet101, StartsPipeOptimsThirdStageAsTheIdentity) {
  for (const char* cut : {"blocks", "layers"}) {
    const auto zeros = [&](const char* init) {
      const auto model = make_model("resnet101", concat("{cut: ", cut, ", zero_init: ", init, "}"));
      std::vector<std::string> names;
      for (const LayerPtr& layer : model->layers())
        for (const ParameterSpec& spec : layer->parameters())
          if (spec.name.ends_with("weight") && spec.init.kind == Initializer::Kind::Constant &&
              spec.init.a == 0)
            names.push_back(parameter_name(*layer, spec.name));
      return names;
    };
    std::vector<std::string> expected;
    for (int block = 11; block <= 20; ++block)
      expected.push_back("block" + std::to_string(block) + ".bn3.weight");
    EXPECT_EQ(zeros("pipeoptim"), expected);
    EXPECT_TRUE(zeros("none").empty());
  }
}

TEST(ResNets, HaveAHeadAfterEveryLayerOfTheFinerCut) {
  for (const char* name : {"resnet18", "resnet50"}) {
    const auto model = make_model(name, "{cut: layers}");
    for (std::size_t i = 0; i < model->layers().size(); ++i)
      EXPECT_EQ(head_shape(*model, i), Shape{10}) << "layer " << i;
  }
}

}  // namespace
}  // namespace pipewright::test
