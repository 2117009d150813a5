// SPDX-License-Identifier: Apache-2.0
// Operators that are counted on the meta device against those that the real forward starts.
#include "core/nn/meta/operation_count.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/loss.h"
#include "core/nn/meta/meta_kernels.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

using Made = std::function<at::Tensor(at::TensorOptions)>;

struct CountedLayer {
  std::string name;
  LayerPtr layer;
  Made input;
  /// The operators that the CPU starts beyond those of a GPU, which are counted.
  int more_on_cpu = 0;
  bool masked = false;  ///< whether the layer peeks at a mask of keys
};

std::int64_t operators(const std::function<void()>& run) {
  const OperationCount count;
  run();
  return count.kernels();
}

std::int64_t operators_of(const CountedLayer& each, at::Device device) {
  std::vector<at::Tensor> parameters, buffers;
  for (const ParameterSpec& spec : each.layer->parameters())
    parameters.push_back(at::ones(spec.shape, device).set_requires_grad(true));
  for (const BufferSpec& spec : each.layer->buffers())
    buffers.push_back(at::ones(spec.shape, device));
  at::Tensor input = each.input(device);
  if (input.is_floating_point()) input.set_requires_grad(true);
  // The graph is that of the layer behind another: in place it changes no leaf.
  const auto inputs = [&] {
    Tensors all{input.is_floating_point() ? input * 1 : input};
    if (each.masked) all.push_back(at::ones({2, 5}, at::TensorOptions(device).dtype(at::kBool)));
    return all;
  };
  const Tensors first = inputs(), second = inputs();
  // The first time may make tables that are made once.
  if (device.is_cpu()) each.layer->forward_all(first, parameters, buffers, {});
  return operators([&] { each.layer->forward_all(second, parameters, buffers, {}); });
}

Made made_of_ones(std::vector<std::int64_t> shape) {
  return [shape](at::TensorOptions options) { return at::ones(shape, options); };
}
const Made kSomeImages = made_of_ones({2, 4, 6, 6}), kSomeRows = made_of_ones({3, 8}),
           kSomeTexts = made_of_ones({2, 5, 8});
const Made kSomeTokens = [](at::TensorOptions options) {
  return at::ones({2, 5}, options.dtype(at::kLong));
};

LayerPtr attention_with(AttentionOptions options) {
  return attention({{"q", linear(8, 8)}, {"k", linear(8, 8)}, {"v", linear(8, 8)}},
                   {"out", linear(8, 8)}, 2, options);
}

std::vector<CountedLayer> counted_layers() {
  constexpr int kMean = 1;  // the CPU's is a sum and a quotient
  std::vector<CountedLayer> all{
      {"linear", linear(8, 4), kSomeRows},
      {"linear without bias", linear(8, 4, {.bias = false}), kSomeRows},
      {"linear of texts", linear(8, 4, {.bias = false}), kSomeTexts},
      {"convolution", convolution(4, 3, {.kernel = 3, .bias = false}), kSomeImages},
      {"convolution with bias, which the CPU adds at once", convolution(4, 3, {.kernel = 3}),
       kSomeImages, -1},
      {"batch norm", batch_norm(4), kSomeImages},
      {"instance norm", instance_norm(), kSomeImages},
      {"layer norm", layer_norm(8), kSomeTexts},
      {"RMS norm, for which a GPU has one kernel", rms_norm(8), kSomeTexts, 6},
      {"embedding", embedding(7, 8), kSomeTokens},
      {"attention", self_attention(8, 2), kSomeTexts},
      {"attention with dropout", self_attention(8, 2, 0.5), kSomeTexts},
      {"causal attention", attention_with({.causal = true}), kSomeTexts},
      {"causal attention with dropout", attention_with({.dropout = 0.5, .causal = true}),
       kSomeTexts},
      {"rotary attention", attention_with({.causal = true, .rotary = RotaryOptions{}}), kSomeTexts},
      {"attention of few keys",
       attention({{"q", linear(8, 8)}, {"k", linear(8, 4)}, {"v", linear(8, 4)}},
                 {"out", linear(8, 8)}, 2, {.key_heads = 1}),
       kSomeTexts},
      {"masked attention", attention_with({.masked = true}), kSomeTexts, 0, true},
      {"masked causal attention", attention_with({.causal = true, .masked = true}), kSomeTexts, 0,
       true},
      {"masked attention with dropout", attention_with({.dropout = 0.5, .masked = true}),
       kSomeTexts, 0, true},
      {"masked causal attention with dropout",
       attention_with({.dropout = 0.5, .causal = true, .masked = true}), kSomeTexts, 0, true},
      {"bound", bound(3), kSomeRows},
      {"max-pool", max_pool(2, 2), kSomeImages},
      {"average-pool", average_pool(2, 2), kSomeImages},
      {"average-pool to 1", average_pool_to(1), kSomeImages, kMean},
      {"average-pool to 3, products on a GPU", average_pool_to(3), kSomeImages,
       1 - kOperatorsOfProducts},
      {"upsample, which the CPU does in three", upsample_nearest(2), kSomeImages, 2},
      {"average over tokens", average_over_tokens(), kSomeTexts, kMean},
      {"flatten", flatten(), kSomeTexts},
      {"dropout", dropout(0.5), kSomeTexts},
  };
  for (const Activation kind : {Activation::Identity, Activation::Relu, Activation::Relu6,
                                Activation::LeakyRelu, Activation::Tanh, Activation::Gelu,
                                Activation::GeluTanh, Activation::Silu, Activation::Relu2})
    for (const bool in_place : {false, true})
      all.push_back({concat("activation ", static_cast<int>(kind), in_place ? " in place" : ""),
                     activation(kind, in_place), kSomeRows});
  return all;
}

TEST(Operators, AreCountedAsTheForwardOfALayerStartsThem) {
  fill_meta_kernels();
  for (const CountedLayer& each : counted_layers())
    EXPECT_EQ(operators_of(each, at::kMeta), operators_of(each, at::kCPU) - each.more_on_cpu)
        << each.name;
}

TEST(Operators, OfAnAveragePoolOnAGpuAreThoseOfItsProducts) {
  const at::Tensor images = at::ones({2, 4, 6, 6});
  EXPECT_EQ(operators([&] { average_by_products(images, 3, 3); }), kOperatorsOfProducts);
}

/// The GPU's steps, with a tanh in the place of the fused cell, which the CPU has not.
TEST(Operators, OfAnLstmAreThoseOfItsStepsOnAGpu) {
  for (const std::int64_t steps : {1, 5, 200}) {
    const auto on_cpu = operators([&] {
      at::Tensor h = at::zeros({2, 4});
      const at::Tensor x = at::ones({2, steps, 8}), w = at::ones({16, 8}).set_requires_grad(true),
                       v = at::ones({16, 4}).set_requires_grad(true);
      const at::Tensor gates = at::linear(x.transpose(0, 1), w);
      std::vector<at::Tensor> outputs;
      for (const at::Tensor& each : gates.unbind()) {
        const at::Tensor sum = at::linear(h, v);
        outputs.push_back(h = at::tanh(each.narrow(1, 0, 4)));
      }
      at::stack(outputs, 1);
    });
    const std::int64_t made = 3;  // the tensors of ones
    const CountedLayer lstm_of{"", lstm(8, 4), made_of_ones({2, steps, 8})};
    EXPECT_EQ(operators_of(lstm_of, at::kMeta), on_cpu - made) << steps;
    EXPECT_GE(operators_of(lstm_of, at::kMeta), 2 * steps);
  }
}

TEST(Operators, OfALossOfLogitsAreThoseThatItStarts) {
  fill_meta_kernels();
  const Value document = parse_yaml("{}", "test");
  Problems problems;
  Options options(&document, "loss", problems);
  const auto loss = Registry<Loss>::instance().find("binary_cross_entropy")->make(options);
  const auto run = [&](at::Device device) {
    const at::Tensor output = at::ones({4, 3}, device), target = at::ones({4, 3}, device);
    return operators([&] { (*loss)(output, target); });
  };
  EXPECT_EQ(run(at::kMeta), run(at::kCPU) - 1) << "the CPU's mean is a sum and a quotient";
}

}  // namespace
}  // namespace pipewright::test
