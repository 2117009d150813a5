// SPDX-License-Identifier: Apache-2.0
// AmoebaNet-D against torchgpipe's counts and shapes. What it computes: golden_test.cpp.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

std::string options(std::int64_t cells, std::int64_t filters) {
  return concat("{cells: ", cells, ", filters: ", filters, "}");
}

TEST(AmoebaNetD, HasTorchgpipesParametersAtEveryPublishedSize) {
  struct Case {
    std::int64_t cells, filters, parameters;
  };
  for (const Case& c :
       {Case{18, 208, 81'505'540}, Case{18, 256, 122'470'120}, Case{18, 416, 319'024'120},
        Case{18, 512, 481'268'200}, Case{18, 544, 542'734'840}, Case{24, 208, 106'540'004},
        Case{24, 512, 632'778'216}, Case{36, 544, 1'055'832'376}, Case{72, 512, 1'844'858'344},
        Case{6, 208, 31'436'612}}) {
    const auto model = make_model("amoebanet_d", options(c.cells, c.filters));
    EXPECT_EQ(total_parameters(*model), c.parameters) << c.cells << ", " << c.filters;
    EXPECT_EQ(model->layers().size(), static_cast<std::size_t>(c.cells) + 6);
  }
}

TEST(AmoebaNetD, HasTorchgpipesParametersInEveryLayer) {
  EXPECT_EQ(parameter_counts(*make_model("amoebanet_d")),
            (std::vector<std::int64_t>{1'856,      74'304,     343'168,     //
                                       676'096,    839'936,    905'472,     //
                                       905'472,    905'472,    905'472,     //
                                       1'956'096,                           //
                                       2'826'752,  3'351'040,  3'613'184,   //
                                       3'613'184,  3'613'184,  3'613'184,   //
                                       7'811'584,                           //
                                       11'289'600, 13'386'752, 14'435'328,  //
                                       14'435'328, 14'435'328, 14'435'328,  //
                                       4'097'000}));
}

TEST(AmoebaNetD, HandsOnTheLastTwoOutputs) {
  const Shape stem1{64, 112, 112}, stem2{384, 56, 56}, stem3{768, 28, 28}, group1{1024, 28, 28},
      reduction1{1536, 14, 14}, group2{2048, 14, 14}, reduction2{3072, 7, 7}, group3{4096, 7, 7};
  std::vector<Shape> outputs{stem1, stem2, stem3};
  outputs.insert(outputs.end(), 6, group1);
  outputs.push_back(reduction1);
  outputs.insert(outputs.end(), 6, group2);
  outputs.push_back(reduction2);
  outputs.insert(outputs.end(), 6, group3);
  std::vector<std::vector<Shape>> expected{{stem1}};
  for (std::size_t i = 1; i < outputs.size(); ++i) expected.push_back({outputs[i], outputs[i - 1]});
  expected.push_back({{1000}});
  EXPECT_EQ(all_boundary_shapes(*make_model("amoebanet_d")), expected);
}

TEST(AmoebaNetD, NamesItsLayersAndTheirParameters) {
  const auto model = make_model("amoebanet_d", options(3, 64));
  EXPECT_EQ(layer_names(*model),
            (std::vector<std::string>{"stem1", "stem2", "stem3", "normal1_1", "reduction1",
                                      "normal2_1", "reduction2", "normal3_1", "classifier"}));
  EXPECT_EQ(parameter_names(*model->layers()[0]),
            (std::vector<std::string>{"stem1.weight", "stem1.bn.weight", "stem1.bn.bias"}));
  const auto cell = parameter_names(*model->layers()[4]);
  EXPECT_EQ(cell.front(), "reduction1.reduce1.weight");
  EXPECT_NE(std::ranges::find(cell, "reduction1.operations.3.conv2.bn.bias"), cell.end());
  EXPECT_EQ(cell.back(), "reduction1.operations.9.bn.bias");
  EXPECT_EQ(parameter_names(*model->layers()[8]),
            (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
}

TEST(AmoebaNetD, TakesImagesThatItsFiveHalvingsDivide) {
  const auto shapes = boundary_shapes(*make_model("amoebanet_d", "{cells: 3, size: 64}"));
  EXPECT_EQ(shapes[7], (Shape{4096, 2, 2}));
  EXPECT_EQ(shapes[8], (Shape{1000}));
}

TEST(AmoebaNetD, HasAHeadAfterEveryLayer) {
  const auto model = make_model("amoebanet_d", "{cells: 3, filters: 8, size: 32, classes: 7}");
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
}

TEST(AmoebaNetD, HasPublishedCutsOfEighteenCells) {
  const auto model = make_model("amoebanet_d");
  EXPECT_EQ(model->published_balance(2), (std::vector<std::int64_t>{9, 15}));
  EXPECT_EQ(model->published_balance(4), (std::vector<std::int64_t>{3, 6, 7, 8}));
  EXPECT_EQ(model->published_balance(8), (std::vector<std::int64_t>{2, 2, 2, 3, 3, 4, 4, 4}));
  EXPECT_TRUE(model->published_balance(3).empty());
  EXPECT_TRUE(make_model("amoebanet_d", "{cells: 24}")->published_balance(2).empty());
}

TEST(AmoebaNetD, RefusesWhatDoesNotDivide) {
  const auto expect = [](const std::string& given, const std::string& what) {
    const std::string text = model_problems("amoebanet_d", given);
    EXPECT_NE(text.find(what), std::string::npos) << given << ": " << text;
  };
  expect("{cells: 4}", "model.cells is 4; expected a multiple of 3");
  expect("{filters: 12}", "model.filters is 12; expected a multiple of 8");
  expect("{size: 112}", "model.size is 112; expected a multiple of 32");
}

}  // namespace
}  // namespace pipewright::test
