// SPDX-License-Identifier: Apache-2.0
// LSTM layers against their formulas, with the weights of forward and backward apart, and what
// padding and cutting into steps must not change.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/lstm_reference.h"

namespace pipewright::test {
namespace {

constexpr std::uint64_t kLstmGradSeed = 99;
const std::vector<std::int64_t> kLstmLengths{4, 1, 3};

/// A layer that is told lengths, as one of a single tensor.
class WithLengths final : public Layer {
 public:
  WithLengths(LayerPtr inner, const std::vector<std::int64_t>& lengths)
      : inner_(std::move(inner)), lengths_(at::tensor(lengths)) {}
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    return inner_->forward_all({input, lengths_}, parameters, buffers, pass)[0];
  }

 private:
  LayerPtr inner_;
  at::Tensor lengths_;
};

struct Weights {
  explicit Weights(const Layer& layer) : forward(scaled(layer, 1)), backward(scaled(layer, 2)) {}
  static std::vector<at::Tensor> scaled(const Layer& layer, std::uint64_t seed) {
    std::vector<at::Tensor> all = random_parameters(layer, seed);
    for (at::Tensor& parameter : all) parameter *= 0.5;
    return all;
  }
  std::vector<at::Tensor> forward, backward;
};

void expect_equal(const Gradients& actual, const std::vector<at::Tensor>& expected,
                  double tolerance) {
  EXPECT_LT(relative_error(actual.output, expected[0]), tolerance) << "output";
  EXPECT_LT(relative_error(actual.input, expected[1]), tolerance) << "input gradient";
  ASSERT_EQ(actual.parameters.size(), expected.size() - 2);
  for (std::size_t i = 0; i < actual.parameters.size(); ++i)
    EXPECT_LT(relative_error(actual.parameters[i], expected[i + 2]), tolerance)
        << "parameter " << i;
}

/// In float64, and in float32, which is another library's kernels.
void expect_formulas(const Layer& layer, const at::Tensor& x, const auto& reference) {
  const Weights w(layer);
  const auto formulas = reference(w.forward);
  std::vector<at::Tensor> expected{formulas.output()};
  for (const at::Tensor& gradient :
       formulas.gradients(grad_output(expected[0], kLstmGradSeed), w.backward))
    expected.push_back(gradient);
  expect_equal(gradients(layer, x, w.forward, w.backward, kLstmGradSeed), expected,
               kFloat64Relative);
  const auto single = [](std::vector<at::Tensor> values) {
    for (at::Tensor& value : values) value = value.to(at::kFloat);
    return values;
  };
  expect_equal(
      gradients(layer, x.to(at::kFloat), single(w.forward), single(w.backward), kLstmGradSeed),
      expected, kFloat32Relative);
}

TEST(ForwardAndBackwardWeights, Lstm) {
  const at::Tensor x = random({3, 6, 5}, 3);
  expect_formulas(*lstm(5, 4), x,
                  [&](const std::vector<at::Tensor>& p) { return LstmReference(x, p); });
}

TEST(ForwardAndBackwardWeights, BidirectionalLstm) {
  const at::Tensor x = random({3, 4, 5}, 3);
  expect_formulas(WithLengths(bidirectional_lstm(5, 2), kLstmLengths), x,
                  [&](const std::vector<at::Tensor>& p) {
                    return BidirectionalLstmReference(x, kLstmLengths, p);
                  });
}

TEST(Lstm, DeclaresAndStartsPyTorchsParameters) {
  const auto specs = bidirectional_lstm(3, 4)->parameters();
  const std::vector<std::string> names{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
  const std::vector<std::vector<std::int64_t>> shapes{{16, 3}, {16, 4}, {16}, {16}};
  ASSERT_EQ(specs.size(), 8U);
  ASSERT_EQ(lstm(3, 4)->parameters().size(), 4U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(specs[i].name, names[i % 4] + (i < 4 ? "" : "_reverse"));
    EXPECT_EQ(specs[i].shape, shapes[i % 4]) << specs[i].name;
    EXPECT_EQ(static_cast<int>(specs[i].init.kind), static_cast<int>(Initializer::Kind::Uniform));
    EXPECT_DOUBLE_EQ(specs[i].init.a, 0.5) << specs[i].name;
    EXPECT_EQ(lstm(3, 4)->parameters()[i % 4].name, names[i % 4]);
  }
}

TEST(Lstm, GoesOnWhereItStopped) {
  const LayerPtr layer = lstm(5, 4);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({3, 6, 5}, 2);
  Carried carried;
  std::vector<at::Tensor> parts;
  std::int64_t at = 0;
  for (const std::int64_t count : {1, 3, 2}) {
    const auto& incremental = dynamic_cast<const Incremental&>(*layer);
    parts.push_back(incremental.go_on({x.narrow(1, at, count)}, parameters, carried)[0]);
    at += count;
  }
  EXPECT_LT(relative_error(at::cat(parts, 1), apply(*layer, x, parameters)), kFloat64Relative);
}

TEST(BidirectionalLstm, IsTheSameWithMorePadding) {
  const LayerPtr layer = bidirectional_lstm(5, 2);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({3, 4, 5}, 3);
  const at::Tensor padded = at::cat({x, random({3, 2, 5}, 4)}, 1);
  const at::Tensor narrow = apply(WithLengths(layer, kLstmLengths), x, parameters);
  const at::Tensor wide = apply(WithLengths(layer, kLstmLengths), padded, parameters);
  EXPECT_LT(relative_error(wide.narrow(1, 0, 4), narrow), kFloat64Relative);
  EXPECT_EQ(wide.narrow(1, 4, 2).abs().max().item<double>(), 0);
}

TEST(BidirectionalLstm, PassesTheOtherTensorsOn) {
  const LayerPtr layer = bidirectional_lstm(5, 2);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor lengths = at::tensor(kLstmLengths), more = at::ones({3, 7}, at::kLong);
  const Tensors y = layer->forward_all({random({3, 4, 5}, 3), lengths, more}, parameters, {}, {});
  ASSERT_EQ(y.size(), 3U);
  EXPECT_TRUE(y[1].is_same(lengths) && y[2].is_same(more));
}

TEST(LstmLayers, WorkInFloat32AndOnTheMetaDevice) {
  const auto layer = sequence({{"both", bidirectional_lstm(6, 3)}, {"one", lstm(6, 5)}});
  for (const auto options : {at::TensorOptions(at::kFloat), at::TensorOptions(at::kMeta)})
    for (const bool training : {true, false}) {
      std::vector<at::Tensor> parameters;
      for (const auto& spec : layer->parameters())
        parameters.push_back(at::zeros(spec.shape, options));
      const at::Tensor lengths = at::ones({2}, options.dtype(at::kLong));
      const Tensors y = layer->forward_all({at::ones({2, 4, 6}, options), lengths}, parameters, {},
                                           {.training = training});
      EXPECT_EQ(y[0].sizes(), (std::vector<std::int64_t>{2, 4, 5}));
      EXPECT_EQ(y[0].scalar_type(), at::kFloat);
      EXPECT_EQ(y[0].device().type(), options.device().type());
    }
}

}  // namespace
}  // namespace pipewright::test
