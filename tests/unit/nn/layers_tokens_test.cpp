// SPDX-License-Identifier: Apache-2.0
// Attention with projections, masks and causality of one's own; and what is read off token ids.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/attention_reference.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

using Shape = std::vector<std::int64_t>;
constexpr std::int64_t kBatch = 3, kTokens = 5, kTokensWidth = 6, kHeads = 2;

std::vector<std::string> token_layer_names(const Layer& layer) {
  std::vector<std::string> all;
  for (const ParameterSpec& spec : layer.parameters()) all.push_back(spec.name);
  return all;
}

LayerPtr separate(AttentionOptions options = {}) {
  LayerPtr layer = attention({{"q", linear(kTokensWidth, kTokensWidth)},
                              {"k", linear(kTokensWidth, kTokensWidth)},
                              {"v", linear(kTokensWidth, kTokensWidth)}},
                             {"out", linear(kTokensWidth, kTokensWidth)}, kHeads, options);
  layer->set_name("att");
  return layer;
}

LayerPtr joint(AttentionOptions options = {}) {
  LayerPtr layer = attention({{"qkv", linear(kTokensWidth, 3 * kTokensWidth)}},
                             {"out", linear(kTokensWidth, kTokensWidth)}, kHeads, options);
  layer->set_name("att");
  return layer;
}

/// The second sample has two keys, the last none.
at::Tensor some_keys() {
  return at::tensor({1, 1, 1, 1, 1,  //
                     0, 1, 0, 1, 0,  //
                     0, 0, 0, 0, 0},
                    at::kLong)
      .view({kBatch, kTokens})
      .ne(0);
}

at::Tensor ones(at::IntArrayRef shape) {
  return at::ones(shape, at::kDouble);
}

TEST(Attention, NamesItsProjections) {
  EXPECT_EQ(token_layer_names(*separate()),
            (std::vector<std::string>{"q.weight", "q.bias", "k.weight", "k.bias", "v.weight",
                                      "v.bias", "out.weight", "out.bias"}));
  EXPECT_EQ(token_layer_names(*joint()),
            (std::vector<std::string>{"qkv.weight", "qkv.bias", "out.weight", "out.bias"}));
  EXPECT_THROW(attention({}, {"out", linear(4, 4)}, 2), Error);
}

TEST(Attention, IsSelfAttentionUnderOtherNames) {
  const at::Tensor x = random({kBatch, kTokens, kTokensWidth}, 2);
  for (const double dropped : {0.0, 0.4}) {
    const LayerPtr theirs = self_attention(kTokensWidth, kHeads, dropped);
    theirs->set_name("att");
    const auto p = random_parameters(*theirs, 1);
    const auto w = p[0].chunk(3), b = p[1].chunk(3);
    const at::Tensor expected = apply(*theirs, x, p, {.seed = 4});
    EXPECT_LT(relative_error(apply(*joint({.dropout = dropped}), x, p, {.seed = 4}), expected),
              kFloat64Relative);
    EXPECT_LT(relative_error(apply(*separate({.dropout = dropped}), x,
                                   {w[0], b[0], w[1], b[1], w[2], b[2], p[2], p[3]}, {.seed = 4}),
                             expected),
              kFloat64Relative);
  }
}

/// Forward and backward with weights of their own, whatever way attention is computed.
TEST(Attention, IsItsFormulaIfCausal) {
  const Pass pass{.seed = 5, .epoch = 1, .minibatch = 7, .first_sample = 3};
  const at::Tensor x = random({kBatch, kTokens, kTokensWidth}, 3);
  for (const double dropped : {0.0, 0.3}) {
    const LayerPtr layer = joint({.dropout = dropped, .causal = true});
    const auto forward = random_parameters(*layer, 1), backward = random_parameters(*layer, 2);
    const SelfAttentionReference reference(
        x, forward, kHeads,
        dropout_mask_reference({kBatch, kHeads, kTokens, kTokens}, dropped, 5, "att.dropout", 1, 7,
                               3),
        ones({kTokens, kTokens}).tril().expand({kBatch, kTokens, kTokens}));
    const auto actual = gradients(*layer, x, forward, backward, 9, Swap::Storage, pass);
    const auto expected = reference.gradients(grad_output(reference.output(), 9), backward);
    EXPECT_LT(relative_error(actual.output, reference.output()), kFloat64Relative);
    EXPECT_LT(relative_error(actual.input, expected[0]), kFloat64Relative);
    for (std::size_t i = 0; i < actual.parameters.size(); ++i)
      EXPECT_LT(relative_error(actual.parameters[i], expected[i + 1]), kFloat64Relative) << i;
  }
}

TEST(Attention, AttendsToUnmaskedTokensOnlyAndToNoneIfThereAreNone) {
  const at::Tensor x = random({kBatch, kTokens, kTokensWidth}, 3), keys = some_keys();
  const Pass pass{.seed = 5, .epoch = 1, .minibatch = 7, .first_sample = 3};
  for (const double dropped : {0.0, 0.3})
    for (const bool causal : {false, true}) {
      const LayerPtr layer = joint({.dropout = dropped, .causal = causal, .masked = true});
      const auto p = random_parameters(*layer, 1);
      at::Tensor allowed = keys.to(at::kDouble).unsqueeze(1).expand({kBatch, kTokens, kTokens});
      if (causal) allowed = allowed * ones({kTokens, kTokens}).tril();
      const SelfAttentionReference reference(
          x, p, kHeads,
          dropout_mask_reference({kBatch, kHeads, kTokens, kTokens}, dropped, 5, "att.dropout", 1,
                                 7, 3),
          allowed);
      // Where there is nothing to attend to, the formula is 0/0 and the output the bias alone.
      const at::Tensor expected =
          at::where(allowed.any(2, /*keepdim=*/true), reference.output(), p[3]);
      const Tensors y = layer->forward_all({x, keys}, p, {}, pass);
      EXPECT_LT(relative_error(y[0], expected), kFloat64Relative) << dropped << ", " << causal;
      ASSERT_EQ(y.size(), 2U);
      EXPECT_TRUE(y[1].is_same(keys)) << "the mask passes untouched";
    }
}

TEST(Attention, IgnoresOtherTensorsUnlessItIsMasked) {
  const at::Tensor x = random({kBatch, kTokens, kTokensWidth}, 3);
  const LayerPtr layer = joint();
  const auto p = random_parameters(*layer, 1);
  EXPECT_TRUE(at::equal(layer->forward_all({x, some_keys()}, p, {}, {})[0], apply(*layer, x, p)));
  EXPECT_THROW(apply(*joint({.masked = true}), x, p), Error);
}

TEST(Tokens, HavePositions) {
  const at::Tensor ids = at::tensor({9, 4, 7, 1, 5, 1}, at::kLong).view({2, 3});
  const auto expect = [&](const LayerPtr& layer, const std::vector<std::int64_t>& values,
                          at::IntArrayRef shape) {
    const at::Tensor y = layer->forward(ids, {}, {}, {});
    EXPECT_EQ(y.scalar_type(), at::kLong);
    EXPECT_TRUE(at::equal(y, at::tensor(values, at::kLong).view(shape))) << y;
  };
  expect(positions(), {0, 1, 2}, {1, 3});
  expect(token_types(), {0}, {1, 1});
  expect(positions_of_words(1), {2, 3, 4, 1, 2, 1}, {2, 3});
  expect(positions_of_words(4), {5, 4, 6, 5, 6, 7}, {2, 3});
}

TEST(Tokens, MaskPadding) {
  const at::Tensor ids = at::tensor({9, 4, 1, 1, 5, 1}, at::kLong).view({2, 3});
  const Tensors y = mask_padding(1)->forward_all({ids, ids}, {}, {}, {});
  ASSERT_EQ(y.size(), 3U);
  EXPECT_TRUE(y[0].is_same(ids));
  EXPECT_EQ(y[2].scalar_type(), at::kBool);
  EXPECT_TRUE(at::equal(y[2].to(at::kLong).flatten(), at::tensor({1, 1, 0, 0, 1, 0}, at::kLong)));
}

TEST(Tokens, EndAtTheFirst) {
  const at::Tensor x = random({2, 3, 4}, 1);
  const Tensors y = first_token()->forward_all({x, x}, {}, {}, {});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_TRUE(at::equal(y[0], x.select(1, 0)));
}

TEST(LinearOfPositions, IsALinearLayerOfTheIdentity) {
  const LayerPtr layer = linear_of_positions(5, 4), plain = linear(5, 4);
  EXPECT_EQ(token_layer_names(*layer), token_layer_names(*plain));
  EXPECT_EQ(layer->parameters()[0].init.a, plain->parameters()[0].init.a);
  const auto p = random_parameters(*layer, 1);
  const at::Tensor y = layer->forward(at::zeros({2, 3}, at::kLong), p, {}, {});
  const at::Tensor identity = at::eye(5, at::kDouble).narrow(0, 0, 3);
  EXPECT_LT(relative_error(y, linear_reference(identity, p[0], p[1]).view({1, 3, 4})),
            kFloat64Relative);
}

TEST(SumOf, AddsWhatItsChildrenGive) {
  const LayerPtr layer = sum_of({{"a", linear(4, 3)}, {"", activation(Activation::Identity)}});
  layer->set_name("s");
  EXPECT_EQ(token_layer_names(*layer), (std::vector<std::string>{"a.weight", "a.bias"}));
  const LayerPtr square = sum_of({{"a", linear(3, 3)}, {"", activation(Activation::Identity)}});
  const auto p = random_parameters(*square, 1);
  const at::Tensor x = random({2, 3}, 2);
  EXPECT_LT(relative_error(apply(*square, x, p), linear_reference(x, p[0], p[1]) + x),
            kFloat64Relative);
}

TEST(Linear, GoesWithoutABias) {
  const LayerPtr layer = linear(4, 3, {.init_std = 0.02, .bias = false});
  EXPECT_EQ(token_layer_names(*layer), std::vector<std::string>{"weight"});
  const auto forward = random_parameters(*layer, 1), backward = random_parameters(*layer, 2);
  const at::Tensor x = random({2, 4}, 2);
  const auto actual = gradients(*layer, x, forward, backward, 9);
  const at::Tensor y = product_reference(x, forward[0].t()), g = grad_output(y, 9);
  EXPECT_LT(relative_error(actual.output, y), kFloat64Relative);
  EXPECT_LT(relative_error(actual.input, product_reference(g, backward[0])), kFloat64Relative);
  EXPECT_LT(relative_error(actual.parameters[0], product_reference(g.t(), x)), kFloat64Relative);
}

/// Values of PyTorch 2.11, torch.nn.functional.gelu(x, approximate="tanh"), in float64.
TEST(Activation, HasGpt2sGelu) {
  const at::Tensor x = at::tensor({-3.0, -0.5, 0.25, 2.0}, at::kDouble);
  const at::Tensor expected = at::tensor(
      {-0.0036373920817729943, -0.15428599017485606, 0.149675350701685, 1.954597694087775},
      at::kDouble);
  EXPECT_LT(relative_error(activate(Activation::GeluTanh, x), expected), kFloat64Relative);
  EXPECT_TRUE(at::equal(activate_in_place(Activation::GeluTanh, x.clone()),
                        activate(Activation::GeluTanh, x)));
}

}  // namespace
}  // namespace pipewright::test
