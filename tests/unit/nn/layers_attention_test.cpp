// SPDX-License-Identifier: Apache-2.0
// What layer norm and self-attention declare, and what no cut or mode may change in them.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/attention_reference.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

using AttentionInit = Initializer::Kind;
using Shape = std::vector<std::int64_t>;

void expect_spec(const ParameterSpec& spec, const std::string& name, const Shape& shape,
                 AttentionInit kind, double a) {
  EXPECT_EQ(spec.name, name);
  EXPECT_EQ(spec.shape, shape) << name;
  EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(kind)) << name;
  EXPECT_DOUBLE_EQ(spec.init.a, a) << name;
}

TEST(LayerNorm, StartsAsTheNormalisationAlone) {
  const auto specs = layer_norm(6)->parameters();
  ASSERT_EQ(specs.size(), 2U);
  expect_spec(specs[0], "weight", {6}, AttentionInit::Constant, 1);
  expect_spec(specs[1], "bias", {6}, AttentionInit::Constant, 0);
}

TEST(SelfAttention, DeclaresAndStartsPyTorchsParameters) {
  const auto specs = self_attention(6, 2)->parameters();
  ASSERT_EQ(specs.size(), 4U);
  expect_spec(specs[0], "in_proj_weight", {18, 6}, AttentionInit::Uniform, 0.5);  // √(6 / (6 + 18))
  expect_spec(specs[1], "in_proj_bias", {18}, AttentionInit::Constant, 0);
  expect_spec(specs[2], "out_proj.weight", {6, 6}, AttentionInit::Uniform, 1 / std::sqrt(6.0));
  expect_spec(specs[3], "out_proj.bias", {6}, AttentionInit::Constant, 0);
}

TEST(SelfAttention, NeedsHeadsThatDivideTheWidth) {
  EXPECT_THROW(self_attention(6, 4), Error);
}

TEST(SelfAttention, DropsNothingInEvaluation) {
  const LayerPtr layer = self_attention(6, 3, 0.5);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({2, 4, 6}, 2);
  const at::Tensor expected =
      SelfAttentionReference(x, parameters, 3, at::ones({2, 3, 4, 4}, at::kDouble)).output();
  EXPECT_LT(relative_error(apply(*layer, x, parameters, {.training = false}), expected),
            kFloat64Relative);
  EXPECT_GT(relative_error(apply(*layer, x, parameters), expected), 0.01);
}

TEST(SelfAttention, DoesNotDependOnTheCutIntoMicroBatches) {
  const LayerPtr layer = self_attention(6, 3, 0.5);
  layer->set_name("layers.0.self_attn");
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({5, 4, 6}, 2);
  const Pass pass{.seed = 3, .epoch = 2, .minibatch = 5};
  const at::Tensor whole = apply(*layer, x, parameters, pass);
  Pass rest = pass;
  rest.first_sample = 2;
  const at::Tensor parts = at::cat({apply(*layer, x.narrow(0, 0, 2), parameters, pass),
                                    apply(*layer, x.narrow(0, 2, 3), parameters, rest)});
  EXPECT_LT(relative_error(parts, whole), kFloat64Relative);
}

TEST(AttentionLayers, WorkInFloat32AndOnTheMetaDevice) {
  const LayerPtr layer = sequence({{"norm", layer_norm(6)},
                                   {"attention", self_attention(6, 2, 0.5)},
                                   {"", average_over_tokens()}});
  for (const auto options : {at::TensorOptions(at::kFloat), at::TensorOptions(at::kMeta)})
    for (const bool training : {true, false}) {
      std::vector<at::Tensor> parameters;
      for (const auto& spec : layer->parameters())
        parameters.push_back(at::zeros(spec.shape, options));
      const at::Tensor y =
          layer->forward(at::ones({5, 4, 6}, options), parameters, {}, {.training = training});
      EXPECT_EQ(y.sizes(), (Shape{5, 6}));
      EXPECT_EQ(y.scalar_type(), at::kFloat);
      EXPECT_EQ(y.device().type(), options.device().type());
    }
}

}  // namespace
}  // namespace pipewright::test
