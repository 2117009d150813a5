// SPDX-License-Identifier: Apache-2.0
// What ResNets compute: the same however they can be cut, and what an independent program computes.
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/initialize.h"
#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Named = std::map<std::string, at::Tensor>;

struct Step {
  at::Tensor output, input_gradient;
  Named parameters, gradients, buffers;
  std::vector<std::string> order;  ///< of the parameters
};

/// One training step of mean(output²); `fill` gives parameter number t its values.
template <class Fill>
Step step(const Model& model, at::Tensor input, const Fill& fill) {
  Step all;
  input.set_requires_grad(true);
  Tensors x{input};
  for (const LayerPtr& layer : model.layers()) {
    std::vector<at::Tensor> parameters, buffers = fresh_buffers(*layer);
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      at::Tensor value = at::empty(spec.shape, at::kDouble);
      fill(value, spec, name, all.order.size());
      parameters.push_back(value.set_requires_grad(true));
      EXPECT_TRUE(all.parameters.emplace(name, value).second) << name;
      all.order.push_back(name);
    }
    x = layer->forward_all(x, parameters, buffers, {});
    const auto specs = layer->buffers();
    for (std::size_t i = 0; i < specs.size(); ++i)
      all.buffers.emplace(parameter_name(*layer, specs[i].name), buffers[i]);
  }
  EXPECT_EQ(x.size(), 1U) << "something was left beside the output";
  all.output = x[0];
  all.output.square().mean().backward();
  all.input_gradient = input.grad();
  for (const auto& [name, value] : all.parameters) all.gradients.emplace(name, value.grad());
  return all;
}

void expect_same(const Named& a, const Named& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(at::equal(value, b.at(name))) << name;
  }
}

TEST(ResNets, ComputeTheSameBitsHoweverTheyCanBeCut) {
  const auto initial = [](at::Tensor& value, const ParameterSpec& spec, const std::string& name,
                          std::size_t) { initialize(value, spec.init, 7, name); };
  for (const auto& [name, stem] : {std::pair("resnet18", "cifar"),
                                   {"resnet34", "imagenet"},
                                   {"resnet50", "cifar"},
                                   {"resnet101", "imagenet"}}) {
    const auto of = [&](const char* cut) {
      const auto model =
          make_model(name, concat("{width: 0.05, size: 8, stem: ", stem, ", cut: ", cut, "}"));
      return step(*model, random({4, 3, 8, 8}, 3), initial);
    };
    const Step blocks = of("blocks"), layers = of("layers");
    EXPECT_TRUE(at::equal(blocks.output, layers.output)) << name;
    EXPECT_EQ(blocks.order, layers.order);
    expect_same(blocks.parameters, layers.parameters);
    expect_same(blocks.gradients, layers.gradients);
    expect_same(blocks.buffers, layers.buffers);
  }
}

/// Numbers in [-1, 1) that depend on nothing but t and the element's index: a hash, so that another
/// program can make the same ones.
at::Tensor hashed_tensor(at::IntArrayRef shape, std::uint32_t t) {
  at::Tensor values = at::empty(shape, at::kDouble);
  for (std::int64_t k = 0; k < values.numel(); ++k) {
    std::uint32_t h = 2654435761U * static_cast<std::uint32_t>(k) + 97531U * t + 1U;
    h ^= h >> 16;
    h *= 0x45d9f3bU;
    h ^= h >> 16;
    values.data_ptr<double>()[k] = 2 * (h / 0x1p32) - 1;
  }
  return values;
}

/// The numbers are torchgpipe's benchmark model's, filled in the same way, in float64 with
/// PyTorch 2.11: twelve digits were written down.
TEST(ResNet101, ComputesWhatTorchgpipesDoes) {
  const auto fill = [](at::Tensor& value, const ParameterSpec& spec, const std::string& name,
                       std::size_t t) {
    const at::Tensor u = hashed_tensor(spec.shape, static_cast<std::uint32_t>(t));
    if (spec.shape.size() > 1)
      value.copy_(u * std::sqrt(6.0 / static_cast<double>(u.numel() / u.size(0))));
    else
      value.copy_(name.ends_with("weight") ? 1 + 0.1 * u : 0.1 * u);
  };
  const auto model = make_model("resnet101", "{size: 64}");
  const Step all = step(*model, hashed_tensor({4, 3, 64, 64}, 999), fill);
  double squares = 0, running = 0;
  for (const auto& [name, gradient] : all.gradients)
    squares += gradient.square().sum().item<double>();
  for (const auto& [name, buffer] : all.buffers) running += buffer.sum().item<double>();
  const auto expect = [&](double value, double golden) {
    EXPECT_NEAR(value / golden, 1, tolerance::kTenDigits) << value;
  };
  expect(all.output.square().mean().item<double>(), 2.60002721674);
  expect(std::sqrt(squares), 5252.12181057);
  expect(all.output.sum().item<double>(), -14.8955404855);
  expect(all.input_gradient.norm().item<double>(), 592.268819934);
  expect(running, 60656.7309722);
}

}  // namespace
}  // namespace pipewright::test
