// SPDX-License-Identifier: Apache-2.0
// The residual LSTM of the SpecTrain code: its published counts and cuts, and what it computes.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"
#include "tests/unit/nn/lstm_reference.h"

namespace pipewright::test {
namespace {

TEST(ResidualLstm, HasThePublishedParametersOfEachStage) {
  const auto model = make_model("residual_lstm");
  EXPECT_EQ(total_parameters(*model), 1'874'690);
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 27U);
  EXPECT_EQ(stage_parameters(*model, 2), (std::vector<std::int64_t>{1'577'216, 297'474}));
  EXPECT_EQ(stage_parameters(*model, 4),
            (std::vector<std::int64_t>{1'428'608, 148'608, 148'608, 148'866}));
  EXPECT_TRUE(model->published_balance(3).empty());
  EXPECT_TRUE(make_model("residual_lstm", "{blocks: 3}")->published_balance(4).empty());
}

TEST(ResidualLstm, KeepsTokensAndWidthUpToTheClassifier) {
  const auto model = make_model("residual_lstm");
  EXPECT_EQ(model->input_shape(), Shape{200});
  EXPECT_EQ(model->vocabulary(), 10'000);
  EXPECT_EQ(boundary_shapes(*model),
            (std::vector<Shape>{{200, 128}, {200, 128}, {200, 128}, {200, 128}, {200, 128}, {2}}));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(head_shape(*model, i), Shape{2}) << "layer " << i;
}

TEST(ResidualLstm, StartsAsThePublishedOne) {
  const auto layers = make_model("residual_lstm")->layers();
  EXPECT_DOUBLE_EQ(layers[0]->parameters()[0].init.a, 1);
  EXPECT_EQ(layers[0]->parameters()[0].init.zero_row, -1) << "the padding's row learns too";
  const auto block = layers[2]->parameters();
  EXPECT_DOUBLE_EQ(block[0].init.a, 1 / std::sqrt(128.0));
  EXPECT_DOUBLE_EQ(block[4].init.a, 0.01);
  EXPECT_DOUBLE_EQ(block[5].init.a, 0);
  EXPECT_EQ(parameter_names(*layers[2])[4], "block2.linear.weight");
  EXPECT_EQ(parameter_names(*layers[2])[0], "block2.lstm.weight_ih_l0");
}

TEST(ResidualLstm, AddsEachBlockToItsInputAndAveragesAllTokens) {
  const auto model =
      make_model("residual_lstm", "{vocabulary: 7, tokens: 5, width: 4, blocks: 1, classes: 3}");
  const auto layers = model->layers();
  ASSERT_EQ(layers.size(), 3U);
  const auto table = random_parameters(*layers[0], 1), p = random_parameters(*layers[1], 2),
             q = random_parameters(*layers[2], 3);
  const at::Tensor tokens = at::tensor({3, 0, 6, 2, 2, 1, 1, 5, 0, 0}).view({2, 5});
  at::Tensor embedded = at::empty({2, 5, 4}, at::kDouble);
  for (std::int64_t s = 0; s < 2; ++s)
    for (std::int64_t t = 0; t < 5; ++t)
      embedded[s][t] = table[0][tokens[s][t].item<std::int64_t>()];
  const at::Tensor recurrent = LstmReference(embedded, {p[0], p[1], p[2], p[3]}).output();
  const at::Tensor block =
      embedded + linear_reference(recurrent.reshape({10, 4}), p[4], p[5]).view({2, 5, 4});
  at::Tensor mean = at::zeros({2, 4}, at::kDouble);
  for (std::int64_t t = 0; t < 5; ++t) mean += block.select(1, t) / 5;

  at::Tensor y = tokens;
  const std::vector<std::vector<at::Tensor>> all{table, p, q};
  for (std::size_t i = 0; i < 3; ++i) y = apply(*layers[i], y, all[i]);
  EXPECT_LT(relative_error(y, linear_reference(mean, q[0], q[1])), kFloat64Relative);
}

}  // namespace
}  // namespace pipewright::test
