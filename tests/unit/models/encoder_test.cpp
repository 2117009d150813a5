// SPDX-License-Identifier: Apache-2.0
// The encoder against torch.nn.TransformerEncoderLayer: its counts, names and (evaluated by
// PyTorch 2.11 in float64) outputs; and against the formulas where it drops.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/attention_reference.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

TEST(Encoder, HasPyTorchsParametersInABlock) {
  const auto model = make_model("encoder");
  std::vector<std::int64_t> expected(6, 789'760);
  expected.push_back(2'570);
  EXPECT_EQ(parameter_counts(*model), expected);
  EXPECT_EQ(parameter_names(*model->layers()[2]),
            (std::vector<std::string>{
                "layers.2.self_attn.in_proj_weight", "layers.2.self_attn.in_proj_bias",
                "layers.2.self_attn.out_proj.weight", "layers.2.self_attn.out_proj.bias",
                "layers.2.norm1.weight", "layers.2.norm1.bias", "layers.2.linear1.weight",
                "layers.2.linear1.bias", "layers.2.linear2.weight", "layers.2.linear2.bias",
                "layers.2.norm2.weight", "layers.2.norm2.bias"}));
  EXPECT_EQ(parameter_names(*model->layers()[6]),
            (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
}

TEST(Encoder, KeepsTokensAndWidthUpToTheClassifier) {
  const auto model = make_model("encoder", "{layers: 2, tokens: 7, width: 12, classes: 3}");
  EXPECT_EQ(model->input_shape(), (Shape{7, 12}));
  EXPECT_EQ(boundary_shapes(*model), (std::vector<Shape>{{7, 12}, {7, 12}, {3}}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(head_shape(*model, i), Shape{3}) << "layer " << i;
}

TEST(Encoder, ComputesWhatPyTorchsDoes) {
  struct Case {
    const char* norm_first;
    std::vector<double> logits;
  };
  for (const Case& c : {Case{"false",
                             {0.8155749997348657, -3.321875532123716,  //
                              0.5548227855793901, -3.1689999203652777}},
                        Case{"true",
                             {0.0714948798774929, -4.621823695981436,  //
                              0.03969032775649581, -4.452368716544876}}}) {
    const auto model = make_model("encoder", std::string("{layers: 2, width: 4, heads: 2, tokens: "
                                                         "3, feed_forward: 6, classes: 2, "
                                                         "norm_first: ") +
                                                 c.norm_first + "}");
    at::Tensor x = at::empty({2, 3, 4}, at::kDouble);
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.data_ptr<double>()[i] = std::cos(static_cast<double>(i));
    for (const LayerPtr& layer : model->layers()) {
      std::vector<at::Tensor> parameters;
      for (const ParameterSpec& spec : layer->parameters())
        parameters.push_back(made_up(parameter_name(*layer, spec.name), spec.shape));
      x = apply(*layer, x, parameters, {.training = false});
    }
    EXPECT_LT(relative_error(x, at::tensor(c.logits, at::kDouble).view({2, 2})), kFloat64Relative)
        << "norm_first: " << c.norm_first;
  }
}

TEST(Encoder, DropsInFourPlacesOfABlock) {
  constexpr double kDropped = 0.3;
  const LayerPtr block =
      make_model("encoder", "{width: 6, heads: 2, feed_forward: 8, dropout: 0.3}")->layers()[0];
  const auto p = random_parameters(*block, 1);
  const at::Tensor x = random({3, 5, 6}, 2), rows = x.view({15, 6});
  const auto mask = [&](at::IntArrayRef shape, const char* name) {
    return dropout_mask_reference(shape, kDropped, 3, name, 1, 7, 2);
  };
  const SelfAttentionReference attention(x, {p[0], p[1], p[2], p[3]}, 2,
                                         mask({3, 2, 5, 5}, "layers.0.0.self_attn.dropout"));
  const at::Tensor attended = attention.output() * mask(x.sizes(), "layers.0.0.dropout1");
  const at::Tensor y = LayerNormReference((x + attended).view({15, 6})).forward(p[4], p[5]);
  const at::Tensor hidden = relu_reference(linear_reference(y, p[6], p[7])) *
                            mask({3, 5, 8}, "layers.0.2.dropout").view({15, 8});
  const at::Tensor fed =
      linear_reference(hidden, p[8], p[9]) * mask(x.sizes(), "layers.0.2.dropout2").view({15, 6});
  const at::Tensor expected = LayerNormReference(y + fed).forward(p[10], p[11]).view(x.sizes());
  const Pass pass{.seed = 3, .epoch = 1, .minibatch = 7, .first_sample = 2};
  EXPECT_LT(relative_error(apply(*block, x, p, pass), expected), kFloat64Relative);
}

TEST(Encoder, RefusesHeadsThatDoNotDivideTheWidth) {
  EXPECT_NE(model_problems("encoder", "{width: 256, heads: 3}")
                .find("expected a divisor of the width, 256"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
