// SPDX-License-Identifier: Apache-2.0
// Every layer with other weights in backward than in forward: activations from the forward's,
// gradients through the backward's, against explicit formulas in float64. Old and new weights are
// independent draws, so a backward that saw the old ones is off by about its own size.
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/attention_reference.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

constexpr std::uint64_t kWeightsGradSeed = 99;

struct LayerWeights {
  explicit LayerWeights(const Layer& layer)
      : forward(random_parameters(layer, 1)), backward(random_parameters(layer, 2)) {}
  std::vector<at::Tensor> forward, backward;
};

void expect_equal_gradients(const Gradients& actual, const Gradients& expected) {
  EXPECT_LT(relative_error(actual.output, expected.output), kFloat64Relative) << "output";
  EXPECT_LT(relative_error(actual.input, expected.input), kFloat64Relative) << "input gradient";
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  for (std::size_t i = 0; i < actual.parameters.size(); ++i)
    EXPECT_LT(relative_error(actual.parameters[i], expected.parameters[i]), kFloat64Relative)
        << "parameter " << i;
}

/// y = xWᵀ + b with `wf`; dx = g W with `wb`.
Gradients linear_gradients(const at::Tensor& x, const std::vector<at::Tensor>& f,
                           const at::Tensor& backward_weight) {
  const at::Tensor y = linear_reference(x, f[0], f[1]);
  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  return {y, product_reference(g, backward_weight), {product_reference(g.t(), x), g.sum(0)}};
}

TEST(ForwardAndBackwardWeights, Linear) {
  const LayerPtr layer = linear(5, 3);
  const LayerWeights w(*layer);
  const at::Tensor x = random({4, 5}, 3);
  expect_equal_gradients(gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
                         linear_gradients(x, w.forward, w.backward[0]));
}

TEST(ForwardAndBackwardWeights, LinearOnThreeDimensions) {
  const LayerPtr layer = linear(5, 3);
  const LayerWeights w(*layer);
  const at::Tensor x = random({4, 2, 5}, 3);
  const Gradients actual = gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed);
  Gradients expected = linear_gradients(x.view({8, 5}), w.forward, w.backward[0]);
  expected.output = expected.output.view({4, 2, 3});
  expected.input = expected.input.view({4, 2, 5});
  expect_equal_gradients(actual, expected);
}

TEST(ForwardAndBackwardWeights, LinearWithActivation) {
  for (const Activation kind : {Activation::Relu, Activation::Tanh}) {
    const LayerPtr layer = linear(12, 4, {.activation = kind, .flatten = true});
    const LayerWeights w(*layer);
    const at::Tensor x = random({3, 3, 2, 2}, 3), flat = x.view({3, 12});
    const at::Tensor z = linear_reference(flat, w.forward[0], w.forward[1]);
    const at::Tensor y = kind == Activation::Relu ? relu_reference(z) : 1 - 2 / ((2 * z).exp() + 1);
    const at::Tensor g = grad_output(y, kWeightsGradSeed);
    const at::Tensor gz =
        kind == Activation::Relu ? relu_backward_reference(g, y) : g * (1 - y * y);
    expect_equal_gradients(gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
                           {y,
                            product_reference(gz, w.backward[0]).view(x.sizes()),
                            {product_reference(gz.t(), flat), gz.sum(0)}});
  }
}

TEST(ForwardAndBackwardWeights, LinearWithActivationOnThreeDimensions) {
  const LayerPtr layer = linear(5, 3, {.activation = Activation::Relu});
  const LayerWeights w(*layer);
  const at::Tensor x = random({4, 2, 5}, 3), rows = x.view({8, 5});
  const at::Tensor y = relu_reference(linear_reference(rows, w.forward[0], w.forward[1]));
  const at::Tensor g = relu_backward_reference(grad_output(y, kWeightsGradSeed), y);
  expect_equal_gradients(gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
                         {y.view({4, 2, 3}),
                          product_reference(g, w.backward[0]).view(x.sizes()),
                          {product_reference(g.t(), rows), g.sum(0)}});
}

/// The trap: with another storage under the *leaf*, autograd's view of Linear's weight keeps the
/// old one. The comparison of the tests above must see that.
TEST(ForwardAndBackwardWeights, SwappingTheLeafInsteadIsRecognised) {
  const LayerPtr layer = linear(5, 3);
  const LayerWeights w(*layer);
  const at::Tensor x = random({4, 5}, 3);
  const Gradients trapped =
      gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed, Swap::Leaf);
  EXPECT_LT(relative_error(trapped.input, linear_gradients(x, w.forward, w.forward[0]).input),
            kFloat64Relative);
  EXPECT_GT(relative_error(trapped.input, linear_gradients(x, w.forward, w.backward[0]).input),
            0.1);
}

TEST(ForwardAndBackwardWeights, Convolution) {
  struct Case {
    std::int64_t kernel, stride, padding;
  };
  for (const Case c : {Case{3, 1, 1}, Case{3, 2, 1}, Case{1, 2, 0}, Case{7, 2, 3}}) {
    const LayerPtr layer =
        convolution(2, 3, {.kernel = c.kernel, .stride = c.stride, .padding = c.padding});
    const LayerWeights w(*layer);
    const at::Tensor x = random({2, 2, 8, 7}, 3);
    const ConvolutionReference conv{c.stride, c.padding};
    const at::Tensor y = conv.forward(x, w.forward[0], w.forward[1]);
    const at::Tensor g = grad_output(y, kWeightsGradSeed);
    expect_equal_gradients(
        gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
        {y,
         conv.grad_input(g, x, w.backward[0]),
         {conv.grad_weight(g, x, w.forward[0]), g.sum(at::IntArrayRef{0, 2, 3})}});
  }
}

TEST(ForwardAndBackwardWeights, BatchNorm) {
  const LayerPtr layer = batch_norm(3);
  const LayerWeights w(*layer);
  const at::Tensor x = random({4, 3, 5, 5}, 3);
  const BatchNormReference norm(x);
  const at::Tensor y = norm.forward(w.forward[0], w.forward[1]);
  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  expect_equal_gradients(
      gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
      {y, norm.grad_input(g, w.backward[0]), {norm.grad_weight(g), norm.grad_bias(g)}});
}

TEST(ForwardAndBackwardWeights, LayerNorm) {
  const LayerPtr layer = layer_norm(6);
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 4, 6}, 3);
  const LayerNormReference norm(x.view({12, 6}));
  const at::Tensor y = norm.forward(w.forward[0], w.forward[1]);
  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  expect_equal_gradients(gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
                         {y.view(x.sizes()),
                          norm.grad_input(g, w.backward[0]).view(x.sizes()),
                          {norm.grad_weight(g), norm.grad_bias(g)}});
}

/// y = w x r with r = 1/√(mean x² + eps): dx = r (g w) − x r³ mean(g w x), dw = Σ g x r.
TEST(ForwardAndBackwardWeights, RmsNorm) {
  const LayerPtr layer = rms_norm(6);
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 4, 6}, 3);
  const at::Tensor r = 1 / ((x * x).mean(-1, true) + 1e-5).sqrt();
  const at::Tensor y = w.forward[0] * x * r;
  const at::Tensor g = grad_output(y, kWeightsGradSeed), to_x = g * w.backward[0];
  expect_equal_gradients(gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
                         {y,
                          r * to_x - x * r * r * r * (to_x * x).mean(-1, true),
                          {(g * x * r).sum(at::IntArrayRef{0, 1})}});
}

TEST(ForwardAndBackwardWeights, SelfAttention) {
  const Pass pass{.seed = 5, .epoch = 1, .minibatch = 7, .first_sample = 3};
  for (const double probability : {0.0, 0.3}) {
    const LayerPtr layer = self_attention(6, 2, probability);
    layer->set_name("all");
    const LayerWeights w(*layer);
    const at::Tensor x = random({3, 5, 6}, 3);
    const at::Tensor mask =
        dropout_mask_reference({3, 2, 5, 5}, probability, 5, "all.dropout", 1, 7, 3);
    const SelfAttentionReference attention(x, w.forward, 2, mask);
    const auto expected =
        attention.gradients(grad_output(attention.output(), kWeightsGradSeed), w.backward);
    expect_equal_gradients(
        gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed, Swap::Storage, pass),
        {attention.output(), expected[0], {expected.begin() + 1, expected.end()}});
  }
}

TEST(ForwardAndBackwardWeights, LayersWithoutWeights) {
  const at::Tensor x = random({2, 3, 6, 6}, 3);
  const auto expect = [&](const LayerPtr& layer, const at::Tensor& y, const auto& grad_input) {
    expect_equal_gradients(gradients(*layer, x, {}, {}, kWeightsGradSeed),
                           {y, grad_input(grad_output(y, kWeightsGradSeed)), {}});
  };
  const at::Tensor relu = relu_reference(x);
  expect(activation(Activation::Relu), relu,
         [&](const at::Tensor& g) { return relu_backward_reference(g, relu); });
  const at::Tensor tanh = 1 - 2 / ((2 * x).exp() + 1);
  expect(activation(Activation::Tanh), tanh,
         [&](const at::Tensor& g) { return g * (1 - tanh * tanh); });
  const MaxPoolReference max{3, 2};
  expect(max_pool(3, 2), max.forward(x), [&](const at::Tensor& g) { return max.grad_input(g, x); });
  const AveragePoolReference average{4};
  expect(average_pool_to(4), average.forward(x),
         [&](const at::Tensor& g) { return average.grad_input(g, x); });
  expect(average_pool_to(1), AveragePoolReference{1}.forward(x),
         [&](const at::Tensor& g) { return AveragePoolReference{1}.grad_input(g, x); });
  expect(average_over_tokens(), (x.select(1, 0) + x.select(1, 1) + x.select(1, 2)) / 3,
         [&](const at::Tensor& g) { return g.unsqueeze(1).expand(x.sizes()) / 3; });
  expect(flatten(), x.view({2, 108}), [&](const at::Tensor& g) { return g.view(x.sizes()); });
  const at::Tensor mask = dropout_mask_reference(x.sizes(), 0.5, 0, "", 0, 0, 0);
  expect(dropout(0.5), x * mask, [&](const at::Tensor& g) { return g * mask; });
}

TEST(ForwardAndBackwardWeights, SequenceOfEverything) {
  // Without bias: one before batch norm has gradient 0, so no relative error.
  const LayerPtr layer = sequence({{"", convolution(2, 3, {.padding = 1, .bias = false})},
                                   {"bn", batch_norm(3)},
                                   {"", activation(Activation::Relu, /*in_place=*/true)},
                                   {"", max_pool(2, 2)},
                                   {"dropout", dropout(0.25)},
                                   {"", average_pool_to(2)},
                                   {"", flatten()},
                                   {"fc", linear(12, 4)}});
  layer->set_name("all");
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 2, 6, 6}, 3);
  const Pass pass{.seed = 5, .epoch = 1, .minibatch = 7, .first_sample = 3};

  const auto &f = w.forward, &b = w.backward;
  const ConvolutionReference conv{1, 1};
  const at::Tensor z1 = conv.forward(x, f[0], {});
  const BatchNormReference norm(z1);
  const at::Tensor y2 = relu_reference(norm.forward(f[1], f[2]));
  const MaxPoolReference max{2, 2};
  const at::Tensor y3 = max.forward(y2);
  const at::Tensor mask = dropout_mask_reference(y3.sizes(), 0.25, 5, "all.dropout", 1, 7, 3);
  const at::Tensor y4 = y3 * mask;
  const AveragePoolReference average{2};
  const at::Tensor y5 = average.forward(y4).view({3, 12});
  const at::Tensor y = linear_reference(y5, f[3], f[4]);

  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  const at::Tensor g5 = product_reference(g, b[3]).view({3, 3, 2, 2});
  const at::Tensor g3 = average.grad_input(g5, y4) * mask;
  const at::Tensor g2 = relu_backward_reference(max.grad_input(g3, y2), y2);
  const at::Tensor g1 = norm.grad_input(g2, b[1]);
  expect_equal_gradients(gradients(*layer, x, f, b, kWeightsGradSeed, Swap::Storage, pass),
                         {y,
                          conv.grad_input(g1, x, b[0]),
                          {conv.grad_weight(g1, x, f[0]), norm.grad_weight(g2), norm.grad_bias(g2),
                           product_reference(g.t(), y5), g.sum(0)}});
}

TEST(ForwardAndBackwardWeights, Concatenation) {
  const LayerPtr layer = concatenate({{"one", convolution(2, 3, {.kernel = 1, .bias = false})},
                                      {"input", nullptr},
                                      {"three", convolution(2, 1, {.padding = 1, .bias = false})}});
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 2, 5, 4}, 3);
  const auto &f = w.forward, &b = w.backward;
  const ConvolutionReference one{1, 0}, three{1, 1};
  const at::Tensor y = at::cat({one.forward(x, f[0], {}), x, three.forward(x, f[1], {})}, 1);
  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  const at::Tensor g1 = g.narrow(1, 0, 3), g3 = g.narrow(1, 5, 1);
  expect_equal_gradients(
      gradients(*layer, x, f, b, kWeightsGradSeed),
      {y,
       one.grad_input(g1, x, b[0]) + g.narrow(1, 3, 2) + three.grad_input(g3, x, b[1]),
       {one.grad_weight(g1, x, f[0]), three.grad_weight(g3, x, f[1])}});
}

LayerPtr norm_of_convolution(std::int64_t kernel) {
  return sequence(
      {{"conv",
        convolution(2, 3, {.kernel = kernel, .stride = 2, .padding = kernel / 2, .bias = false})},
       {"bn", batch_norm(3)}});
}

TEST(ForwardAndBackwardWeights, ResidualWithShortcut) {
  const LayerPtr layer = residual(norm_of_convolution(3), norm_of_convolution(1));
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 2, 6, 6}, 3);

  const auto &f = w.forward, &b = w.backward;
  const ConvolutionReference body{2, 1}, shortcut{2, 0};
  const at::Tensor zb = body.forward(x, f[0], {}), zs = shortcut.forward(x, f[3], {});
  const BatchNormReference norm_b(zb), norm_s(zs);
  const at::Tensor y = relu_reference(norm_b.forward(f[1], f[2]) + norm_s.forward(f[4], f[5]));

  const at::Tensor g = relu_backward_reference(grad_output(y, kWeightsGradSeed), y);
  const at::Tensor gb = norm_b.grad_input(g, b[1]), gs = norm_s.grad_input(g, b[4]);
  expect_equal_gradients(
      gradients(*layer, x, f, b, kWeightsGradSeed),
      {y,
       body.grad_input(gb, x, b[0]) + shortcut.grad_input(gs, x, b[3]),
       {body.grad_weight(gb, x, f[0]), norm_b.grad_weight(g), norm_b.grad_bias(g),
        shortcut.grad_weight(gs, x, f[3]), norm_s.grad_weight(g), norm_s.grad_bias(g)}});
}

TEST(ForwardAndBackwardWeights, ResidualOfTheInputItself) {
  const LayerPtr layer = residual(linear(4, 4));
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 4}, 3);
  const at::Tensor y = relu_reference(linear_reference(x, w.forward[0], w.forward[1]) + x);
  const at::Tensor g = relu_backward_reference(grad_output(y, kWeightsGradSeed), y);
  expect_equal_gradients(
      gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
      {y, product_reference(g, w.backward[0]) + g, {product_reference(g.t(), x), g.sum(0)}});
}

TEST(ForwardAndBackwardWeights, ResidualWithoutActivation) {
  const LayerPtr layer = residual(linear(4, 4), nullptr, Activation::Identity);
  const LayerWeights w(*layer);
  const at::Tensor x = random({3, 4}, 3);
  const at::Tensor y = linear_reference(x, w.forward[0], w.forward[1]) + x;
  const at::Tensor g = grad_output(y, kWeightsGradSeed);
  expect_equal_gradients(
      gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed),
      {y, product_reference(g, w.backward[0]) + g, {product_reference(g.t(), x), g.sum(0)}});
}

/// float32 takes other kernels, which might keep packed copies of weights; float64 has been
/// checked.
TEST(ForwardAndBackwardWeights, AreAlsoToldApartInFloat32) {
  const auto single = [](std::vector<at::Tensor> values) {
    for (at::Tensor& value : values) value = value.to(at::kFloat);
    return values;
  };
  const auto check = [&](const LayerPtr& layer, const at::Tensor& x) {
    const LayerWeights w(*layer);
    const Gradients exact = gradients(*layer, x, w.forward, w.backward, kWeightsGradSeed);
    const Gradients actual = gradients(*layer, x.to(at::kFloat), single(w.forward),
                                       single(w.backward), kWeightsGradSeed);
    EXPECT_EQ(actual.input.scalar_type(), at::kFloat);
    EXPECT_LT(relative_error(actual.output, exact.output), kFloat32Relative);
    EXPECT_LT(relative_error(actual.input, exact.input), kFloat32Relative);
    for (std::size_t i = 0; i < exact.parameters.size(); ++i)
      EXPECT_LT(relative_error(actual.parameters[i], exact.parameters[i]), kFloat32Relative)
          << "parameter " << i;
  };
  check(linear(32, 16), random({8, 32}, 3));
  check(convolution(16, 16, {.padding = 1}), random({4, 16, 8, 8}, 3));
  check(convolution(16, 32, {.kernel = 1, .stride = 2}), random({4, 16, 8, 8}, 3));
  check(batch_norm(16), random({4, 16, 8, 8}, 3));
  check(residual(norm_of_convolution(3), norm_of_convolution(1)), random({4, 2, 8, 8}, 3));
  check(linear(32, 16, {.activation = Activation::Tanh}), random({4, 8, 32}, 3));
  check(layer_norm(32), random({4, 8, 32}, 3));
  check(rms_norm(32), random({4, 8, 32}, 3));
  // Smaller numbers than elsewhere: large scores make softmax jump between tokens.
  check(self_attention(32, 4), 0.1 * random({4, 8, 32}, 3));
  check(self_attention(32, 4, 0.25), 0.1 * random({4, 8, 32}, 3));
}

}  // namespace
}  // namespace pipewright::test
