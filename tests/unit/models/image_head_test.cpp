// SPDX-License-Identifier: Apache-2.0
// The words auxiliary heads are written in.
#include "models/parts/image_head.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

LayerPtr head(const std::string& words, std::int64_t channels = 2, std::int64_t classes = 3) {
  Problems problems;
  const Value mapping = parse_yaml("{aux_head: " + words + "}", "test.yaml");
  Options options(&mapping, "model", problems);
  LayerPtr layer = ImageHead(options, "gbpl_fc").on_image(channels, classes);
  for (const Error& error : problems.errors()) ADD_FAILURE() << error.what();
  layer->set_name("heads.0");
  return layer;
}

at::Tensor classified(const at::Tensor& map, const std::vector<at::Tensor>& fc) {
  const at::Tensor pooled = AveragePoolReference{1}.forward(map);
  return linear_reference(pooled.view({map.size(0), map.size(1)}), fc[0], fc[1]);
}

TEST(ImageHead, NamesItsParameters) {
  EXPECT_EQ(
      parameter_names(*head("conv4_bn_conv2_gbpl_fc")),
      (std::vector<std::string>{"heads.0.conv1.weight", "heads.0.conv1.bias", "heads.0.bn1.weight",
                                "heads.0.bn1.bias", "heads.0.conv2.weight", "heads.0.conv2.bias",
                                "heads.0.fc.weight", "heads.0.fc.bias"}));
}

TEST(ImageHead, LeavesConvolutionBiasesAsPyTorchDoes) {
  const auto specs = head("conv4_gbpl_fc")->parameters();
  EXPECT_EQ(static_cast<int>(specs[0].init.kind), static_cast<int>(Initializer::Kind::Normal));
  EXPECT_EQ(static_cast<int>(specs[1].init.kind), static_cast<int>(Initializer::Kind::Uniform));
  EXPECT_EQ(static_cast<int>(specs[2].init.kind), static_cast<int>(Initializer::Kind::Uniform));
}

TEST(ImageHead, PoolsAndClassifies) {
  const LayerPtr layer = head("gbpl_fc");
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({4, 2, 5, 5}, 2);
  EXPECT_LT(relative_error(apply(*layer, x, parameters), classified(x, parameters)),
            kFloat64Relative);
}

TEST(ImageHead, FollowsEachConvolutionByReLU) {
  const LayerPtr layer = head("conv4_gbpl_fc");
  const auto p = random_parameters(*layer, 1);
  const at::Tensor x = random({4, 2, 5, 5}, 2);
  const at::Tensor map = relu_reference(ConvolutionReference{1, 1}.forward(x, p[0], p[1]));
  EXPECT_LT(relative_error(apply(*layer, x, p), classified(map, {p[2], p[3]})), kFloat64Relative);
}

TEST(ImageHead, PutsBatchNormInPlaceOfTheReLUBeforeIt) {
  const LayerPtr layer = head("conv4_bn_gbpl_fc");
  const auto p = random_parameters(*layer, 1);
  const at::Tensor x = random({4, 2, 5, 5}, 2);
  const at::Tensor z = ConvolutionReference{1, 1}.forward(x, p[0], p[1]);
  const at::Tensor map = relu_reference(BatchNormReference(z).forward(p[2], p[3]));
  EXPECT_LT(relative_error(apply(*layer, x, p), classified(map, {p[4], p[5]})), kFloat64Relative);
}

TEST(ImageHead, SaysWhatIsWrong) {
  const auto problem = [](const std::string& words) {
    return model_problems("resnet18", "{aux_head: " + words + "}");
  };
  const auto expect = [&](const std::string& words, const std::string& what) {
    const std::string text = problem(words);
    EXPECT_NE(text.find(what), std::string::npos) << words << ": " << text;
    EXPECT_NE(text.find("test.yaml:1:"), std::string::npos) << text;
  };
  expect("fc", "'fc' comes before 'gbpl'; expected it after");
  expect("gbpl", "the end is missing; expected 'gbpl_fc'");
  expect("conv8_bn", "the end is missing; expected 'gbpl_fc'");
  expect("gbpl_gbpl_fc", "'gbpl' comes twice");
  expect("gbpl_conv8_fc", "'conv8' follows 'gbpl'; expected it before");
  expect("gbpl_bn_fc", "'bn' follows 'gbpl'; expected it before");
  expect("gbpl_fc_fc", "a word follows 'fc'");
  for (const char* words : {"flt_fc", "conv_gbpl_fc", "conv0_gbpl_fc", "conv-1_gbpl_fc",
                            "conv8x_gbpl_fc", "conv99999999999999999999_gbpl_fc", "gbpl__fc"})
    expect(words, "is no word of a head; expected convN");
}

TEST(ImageHead, FallsBackToTheDefaultAfterAProblem) {
  Problems problems;
  const Value mapping = parse_yaml("{aux_head: nonsense}", "test.yaml");
  Options options(&mapping, "model", problems);
  const ImageHead fallback(options, "gbpl_fc");
  EXPECT_EQ(problems.errors().size(), 1U);
  EXPECT_EQ(fallback.on_image(2, 3)->parameters().size(), 2U);
}

}  // namespace
}  // namespace pipewright::test
