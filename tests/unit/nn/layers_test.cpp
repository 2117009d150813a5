// SPDX-License-Identifier: Apache-2.0
// What each layer declares and computes.
#include "core/nn/layers.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

std::vector<std::string> names(const Layer& layer) {
  std::vector<std::string> all;
  for (const ParameterSpec& spec : layer.parameters()) all.push_back(spec.name);
  return all;
}

void expect_init(const ParameterSpec& spec, Initializer::Kind kind, double a) {
  EXPECT_EQ(static_cast<int>(spec.init.kind), static_cast<int>(kind)) << spec.name;
  EXPECT_DOUBLE_EQ(spec.init.a, a) << spec.name;
}

using LayerInit = Initializer::Kind;
using Shape = std::vector<std::int64_t>;

TEST(Linear, StartsUniformWithinOneOverRootIn) {
  const auto specs = linear(16, 3)->parameters();
  EXPECT_EQ(specs[0].shape, (Shape{3, 16}));
  EXPECT_EQ(specs[1].shape, (Shape{3}));
  expect_init(specs[0], LayerInit::Uniform, 0.25);
  expect_init(specs[1], LayerInit::Uniform, 0.25);
}

TEST(Linear, StartsNormalWithZeroBiasOnRequest) {
  const auto specs = linear(16, 3, {.init_std = 0.01})->parameters();
  expect_init(specs[0], LayerInit::Normal, 0.01);
  expect_init(specs[1], LayerInit::Constant, 0);
}

TEST(Linear, ActsOnTheLastDimension) {
  const LayerPtr layer = linear(5, 3);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({2, 4, 5}, 2);
  const at::Tensor expected =
      linear_reference(x.view({8, 5}), parameters[0], parameters[1]).view({2, 4, 3});
  EXPECT_LT(relative_error(apply(*layer, x, parameters), expected), kFloat64Relative);
}

/// Gives each product back, and counts them.
class CountedProducts final : public GradientSums {
 public:
  at::Tensor add_product(const at::Tensor&, const at::Tensor& left,
                         const at::Tensor& right) override {
    ++count;
    return left.mm(right);
  }
  int count = 0;
};

class LinearWithSums : public testing::TestWithParam<bool> {};

TEST_P(LinearWithSums, HasTheGradientsOfALinearLayer) {
  const LayerPtr layer = linear(256, 256, {.bias = GetParam()});
  std::vector<at::Tensor> parameters = random_parameters(*layer, 1);
  for (at::Tensor& parameter : parameters) parameter = parameter.to(at::kFloat);
  const at::Tensor x = random({8, 256}, 2).to(at::kFloat);
  const Gradients expected = gradients(*layer, x, parameters, parameters, 3);
  CountedProducts sums;
  const Gradients found = gradients(*layer, x, parameters, parameters, 3, Swap::Storage,
                                    {.microbatches = 2, .sums = &sums});
  EXPECT_TRUE(found.output.equal(expected.output));
  EXPECT_TRUE(found.input.equal(expected.input));
  EXPECT_EQ(sums.count, 1);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(found.parameters[i].equal(expected.parameters[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Layers, LinearWithSums, testing::Values(true, false),
                         [](const auto& each) { return each.param ? "Biased" : "WithoutBias"; });

TEST(Linear, FlattensWhateverShapeHoldsItsInputs) {
  const LayerPtr layer = linear(12, 3, {.flatten = true});
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({2, 3, 2, 2}, 2);
  const at::Tensor expected = linear_reference(x.view({2, 12}), parameters[0], parameters[1]);
  EXPECT_LT(relative_error(apply(*layer, x, parameters), expected), kFloat64Relative);
  EXPECT_LT(relative_error(apply(*layer, x.view({2, 12}), parameters), expected), kFloat64Relative);
}

TEST(Linear, FlattensSamplesOfOneNumber) {
  const LayerPtr layer = linear(1, 2, {.flatten = true});
  EXPECT_EQ(apply(*layer, random({4}, 1), random_parameters(*layer, 1)).sizes(), (Shape{4, 2}));
}

TEST(Linear, AppliesItsActivation) {
  const auto parameters = random_parameters(*linear(5, 3), 1);
  const at::Tensor x = random({4, 5}, 2);
  const at::Tensor z = linear_reference(x, parameters[0], parameters[1]);
  const auto y = [&](Activation kind) {
    return apply(*linear(5, 3, {.activation = kind}), x, parameters);
  };
  EXPECT_LT(relative_error(y(Activation::Relu), relu_reference(z)), kFloat64Relative);
  const at::Tensor tanh_z = 1 - 2 / ((2 * z).exp() + 1);
  EXPECT_LT(relative_error(y(Activation::Tanh), tanh_z), kFloat64Relative);
  EXPECT_LT(relative_error(y(Activation::Identity), z), kFloat64Relative);
}

TEST(Linear, StartsAsToldInPlaceOfItsRules) {
  const Initializer truncated{LayerInit::TruncatedNormal, 0.1};
  const auto weight = linear(16, 3, {.weight = truncated})->parameters();
  expect_init(weight[0], LayerInit::TruncatedNormal, 0.1);
  expect_init(weight[1], LayerInit::Uniform, 0.25);
  const auto bias = linear(16, 3, {.bias_init = Initializer{LayerInit::Constant, 0}})->parameters();
  expect_init(bias[0], LayerInit::Uniform, 0.25);
  expect_init(bias[1], LayerInit::Constant, 0);
}

TEST(Convolution, StartsAsToldInPlaceOfItsRules) {
  const Initializer truncated{LayerInit::TruncatedNormal, 0.1};
  const auto specs = convolution(3, 8, {.weight = truncated})->parameters();
  expect_init(specs[0], LayerInit::TruncatedNormal, 0.1);
  expect_init(specs[1], LayerInit::Constant, 0);
}

TEST(Convolution, StartsKaimingNormalOverFanOut) {
  const auto specs = convolution(3, 8, {.kernel = 3})->parameters();
  EXPECT_EQ(specs[0].shape, (Shape{8, 3, 3, 3}));
  expect_init(specs[0], LayerInit::Normal, std::sqrt(2.0 / 72));
  expect_init(specs[1], LayerInit::Constant, 0);
}

TEST(Convolution, StartsAsPyTorchOnRequest) {
  const double bound = 1 / std::sqrt(27.0);
  const auto specs = convolution(3, 8, {.kernel = 3, .kaiming_fan_out = false})->parameters();
  expect_init(specs[0], LayerInit::Uniform, bound);
  expect_init(specs[1], LayerInit::Uniform, bound);
  const auto mixed = convolution(3, 8, {.kernel = 3, .uniform_bias = true})->parameters();
  expect_init(mixed[0], LayerInit::Normal, std::sqrt(2.0 / 72));
  expect_init(mixed[1], LayerInit::Uniform, bound);
}

TEST(Convolution, MatchesItsFormula) {
  struct Case {
    std::int64_t kernel, stride, padding;
    bool bias;
  };
  for (const Case c :
       {Case{3, 1, 1, true}, Case{3, 2, 1, false}, Case{1, 2, 0, false}, Case{7, 2, 3, true}}) {
    const LayerPtr layer = convolution(
        2, 3, {.kernel = c.kernel, .stride = c.stride, .padding = c.padding, .bias = c.bias});
    const auto parameters = random_parameters(*layer, 1);
    ASSERT_EQ(parameters.size(), c.bias ? 2U : 1U);
    const at::Tensor x = random({2, 2, 9, 8}, 2);
    const at::Tensor expected = ConvolutionReference{c.stride, c.padding}.forward(
        x, parameters[0], c.bias ? parameters[1] : at::Tensor());
    EXPECT_LT(relative_error(apply(*layer, x, parameters), expected), kFloat64Relative)
        << "kernel " << c.kernel << " stride " << c.stride;
  }
}

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  const at::Tensor x = random({2, 3, 7, 7}, 1);
  EXPECT_TRUE(at::equal(apply(*max_pool(2, 2), x, {}), MaxPoolReference{2, 2}.forward(x)));
  EXPECT_TRUE(at::equal(apply(*max_pool(3, 2), x, {}), MaxPoolReference{3, 2}.forward(x)));
}

TEST(MaxPool, PadsWithWhatNeverWins) {
  const at::Tensor x = -random({1, 1, 4, 4}, 1).abs() - 1;
  EXPECT_EQ(apply(*max_pool(3, 2, 1), x, {}).sizes(), (Shape{1, 1, 2, 2}));
  EXPECT_LE(apply(*max_pool(3, 2, 1), x, {}).max().item<double>(), -1);
}

TEST(MaxPool, TakesWindowsThatReachBeyondTheImageOnRequest) {
  const at::Tensor x = random({2, 3, 6, 6}, 1);
  const at::Tensor padded = at::constant_pad_nd(x, {0, 1, 0, 1}, -1e9);
  EXPECT_EQ(apply(*max_pool(3, 2), x, {}).sizes(), (Shape{2, 3, 2, 2}));
  EXPECT_TRUE(
      at::equal(apply(*max_pool(3, 2, 0, true), x, {}), MaxPoolReference{3, 2}.forward(padded)));
}

TEST(AveragePool, AveragesDownAndRepeatsUp) {
  const at::Tensor x = random({2, 3, 5, 7}, 1);
  EXPECT_LT(relative_error(apply(*average_pool_to(3), x, {}), AveragePoolReference{3}.forward(x)),
            kFloat64Relative);
  const at::Tensor single = random({2, 3, 1, 1}, 2);
  EXPECT_TRUE(at::equal(apply(*average_pool_to(7), single, {}), single.expand({2, 3, 7, 7})));
}

TEST(Flatten, KeepsTheBatch) {
  EXPECT_EQ(apply(*flatten(), random({4, 3, 2, 2}, 1), {}).sizes(), (Shape{4, 12}));
}

TEST(Activation, LeavesItsInputAlone) {
  const at::Tensor x = random({3, 4}, 1), before = x.clone();
  EXPECT_TRUE(at::equal(apply(*activation(Activation::Relu), x, {}), relu_reference(x)));
  apply(*activation(Activation::Tanh), x, {});
  EXPECT_TRUE(at::equal(x, before));
}

TEST(Sequence, PrefixesParametersOfNamedChildrenOnly) {
  const LayerPtr layer = sequence({{"", convolution(1, 2, {})},
                                   {"bn", batch_norm(2)},
                                   {"", activation(Activation::Relu)},
                                   {"fc", linear(2, 2)}});
  EXPECT_EQ(names(*layer), (std::vector<std::string>{"weight", "bias", "bn.weight", "bn.bias",
                                                     "fc.weight", "fc.bias"}));
  EXPECT_EQ(layer->buffers()[0].name, "bn.running_mean");
  EXPECT_EQ(layer->buffers()[1].name, "bn.running_var");
}

TEST(Sequence, GivesItsChildrenFullNames) {
  const LayerPtr first = dropout(0.5), second = dropout(0.5);
  const LayerPtr inner = sequence({{"", second}});
  sequence({{"drop", first}, {"", inner}})->set_name("stem");
  EXPECT_EQ(first->name(), "stem.drop");
  EXPECT_EQ(second->name(), "stem.1.0");
}

TEST(Sequence, RefusesTwoParametersOfOneName) {
  EXPECT_THROW(sequence({{"", linear(1, 1)}, {"", linear(1, 1)}}), Error);
}

TEST(Concatenate, JoinsWhatItsBranchesMakeOfOneInput) {
  const LayerPtr one = convolution(2, 3, {.kernel = 1}), pool = max_pool(3, 1, 1);
  const LayerPtr layer = concatenate({{"pool", pool}, {"input", nullptr}, {"one", one}});
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({2, 2, 4, 5}, 2), before = x.clone();
  const at::Tensor y = apply(*layer, x, parameters);
  EXPECT_EQ(y.sizes(), (Shape{2, 7, 4, 5}));
  EXPECT_TRUE(at::equal(y.narrow(1, 0, 2), apply(*pool, x, {})));
  EXPECT_TRUE(at::equal(y.narrow(1, 2, 2), x));
  EXPECT_TRUE(at::equal(y.narrow(1, 4, 3), apply(*one, x, parameters)));
  y.zero_();
  EXPECT_TRUE(at::equal(x, before));
}

TEST(Concatenate, NamesItsBranchesAsASequenceItsChildren) {
  const LayerPtr first = dropout(0.5), second = dropout(0.5);
  const LayerPtr layer = concatenate({{"one", convolution(1, 2, {.kernel = 1, .bias = false})},
                                      {"", batch_norm(1)},
                                      {"drop", first},
                                      {"", second}});
  layer->set_name("mixed");
  EXPECT_EQ(names(*layer), (std::vector<std::string>{"one.weight", "weight", "bias"}));
  EXPECT_EQ(layer->buffers()[0].name, "running_mean");
  EXPECT_EQ(first->name(), "mixed.drop");
  EXPECT_EQ(second->name(), "mixed.3");
}

TEST(Concatenate, RefusesNoBranchesAndTwoParametersOfOneName) {
  EXPECT_THROW(concatenate({}), Error);
  EXPECT_THROW(concatenate({{"", linear(1, 1)}, {"", linear(1, 1)}}), Error);
}

TEST(Residual, NamesItsShortcut) {
  const LayerPtr body = sequence({{"conv", convolution(1, 2, {.bias = false})}});
  const LayerPtr shortcut = sequence({{"conv", convolution(1, 2, {.bias = false})}});
  const LayerPtr block = residual(body, shortcut);
  block->set_name("block1");
  EXPECT_EQ(names(*block), (std::vector<std::string>{"conv.weight", "shortcut.conv.weight"}));
  EXPECT_EQ(body->name(), "block1");
  EXPECT_EQ(shortcut->name(), "block1.shortcut");
}

TEST(Residual, AddsItsInputWithoutWritingIntoIt) {
  const LayerPtr block = residual(flatten());  // a body whose output is the input's own memory
  const at::Tensor x = random({3, 4}, 1), before = x.clone();
  EXPECT_TRUE(at::equal(apply(*block, x, {}), relu_reference(2 * before)));
  EXPECT_TRUE(at::equal(x, before));
}

TEST(Layers, WorkInFloat32AndOnTheMetaDevice) {
  const LayerPtr layer = sequence({{"", convolution(2, 4, {.padding = 1})},
                                   {"bn", batch_norm(4)},
                                   {"", activation(Activation::Relu, true)},
                                   {"", max_pool(2, 2)},
                                   {"", dropout(0.5)},
                                   {"", average_pool_to(2)},
                                   {"fc", linear(16, 3, {.flatten = true})}});
  for (const auto options : {at::TensorOptions(at::kFloat), at::TensorOptions(at::kMeta)}) {
    std::vector<at::Tensor> parameters, buffers;
    for (const auto& spec : layer->parameters())
      parameters.push_back(at::zeros(spec.shape, options));
    for (const auto& spec : layer->buffers()) buffers.push_back(at::ones(spec.shape, options));
    const at::Tensor y = layer->forward(at::ones({5, 2, 8, 8}, options), parameters, buffers, {});
    EXPECT_EQ(y.sizes(), (Shape{5, 3}));
    EXPECT_EQ(y.scalar_type(), at::kFloat);
    EXPECT_EQ(y.device().type(), options.device().type());
  }
}

}  // namespace
}  // namespace pipewright::test
