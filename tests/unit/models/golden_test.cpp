// SPDX-License-Identifier: Apache-2.0
// What torchgpipe's benchmark models compute: a step of each in float64, measured with PyTorch 2.11
// on torchgpipe's own code, from weights and inputs that a formula fills.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/filled.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// What is measured. NaN: is not.
struct Golden {
  double loss, gradient, output, input_gradient;
};

struct GoldenStep {
  const char* model;
  const char* options;
  bool training = true;
  Shape input;
  int microbatches = 1;
};

/// Loss mean(out²) of the micro-batches' outputs, one after another, and one backward.
class Measured {
 public:
  explicit Measured(const GoldenStep& step) {
    const auto model = make_model(step.model, step.options);
    const auto layers = model->layers();
    for (const LayerPtr& layer : layers) place(*layer);
    const at::Tensor input = filled(999, step.input).set_requires_grad(true);
    std::vector<at::Tensor> outputs;
    for (const at::Tensor& part : input.chunk(step.microbatches))
      outputs.push_back(forward(layers, part, {.training = step.training}));
    const at::Tensor output = at::cat(outputs), loss = output.square().mean();
    std::vector<at::Tensor> of{input};
    for (const auto& own : parameters_) of.insert(of.end(), own.begin(), own.end());
    const auto gradients = torch::autograd::grad({loss}, of);
    double squares = 0;
    for (std::size_t i = 1; i < gradients.size(); ++i)
      squares += gradients[i].square().sum().item<double>();
    golden = {loss.item<double>(), std::sqrt(squares), output.sum().item<double>(),
              gradients[0].norm().item<double>()};
  }

  Golden golden{};

  /// Over all running means and variances.
  double statistics() const {
    double sum = 0;
    for (const auto& own : buffers_)
      for (const at::Tensor& buffer : own) sum += buffer.sum().item<double>();
    return sum;
  }

 private:
  void place(const Layer& layer) {
    parameters_.emplace_back();
    for (const ParameterSpec& spec : layer.parameters())
      parameters_.back().push_back(filled(next_++, spec).set_requires_grad(true));
    buffers_.push_back(fresh_buffers(layer));
  }

  at::Tensor forward(const std::vector<LayerPtr>& layers, const at::Tensor& input,
                     const Pass& pass) {
    Tensors x{input};
    for (std::size_t i = 0; i < layers.size(); ++i)
      x = layers[i]->forward_all(x, parameters_[i], buffers_[i], pass);
    EXPECT_EQ(x.size(), 1U);
    return x[0];
  }

  std::uint32_t next_ = 0;
  std::vector<std::vector<at::Tensor>> parameters_, buffers_;  // by layer
};

void expect_near(double value, double golden, const char* what) {
  if (std::isnan(golden)) return;
  EXPECT_NEAR(value, golden, tolerance::kTenDigits * std::abs(golden)) << what;
}

Measured expect_golden(const GoldenStep& step, const Golden& golden) {
  Measured measured(step);
  expect_near(measured.golden.loss, golden.loss, "loss");
  expect_near(measured.golden.gradient, golden.gradient, "norm of the parameters' gradients");
  expect_near(measured.golden.output, golden.output, "sum of the outputs");
  expect_near(measured.golden.input_gradient, golden.input_gradient,
              "norm of the input's gradient");
  return measured;
}

TEST(Golden, FillsAsTheMeasurementDid) {
  const double digits = 2 * tolerance::written(10);  // one was cut, not rounded
  EXPECT_NEAR(hashed(0, 0), 0.0170533299, digits);
  EXPECT_NEAR(hashed(0, 1), 0.3710732667, digits);
  EXPECT_NEAR(hashed(0, 2), 0.1713238442, digits);
  EXPECT_NEAR(hashed(7, 0), 0.6006595548, digits);
  EXPECT_NEAR(hashed(7, 1), 0.9734462669, digits);
  EXPECT_NEAR(hashed(7, 2), 0.9011371478, digits);
}

constexpr const char* kResNet101 = "{cut: layers, stem: imagenet, classes: 10, size: 64}";

TEST(Golden, ResNet101) {
  const Measured measured =
      expect_golden({"resnet101", kResNet101, true, {4, 3, 64, 64}},
                    {2.60002721674, 5252.12181057, -14.8955404855, 592.268819934});
  expect_near(measured.statistics(), 60656.7309722, "running statistics");
}

TEST(Golden, ResNet101InTwoMicroBatches) {
  const Measured measured =
      expect_golden({"resnet101", kResNet101, true, {4, 3, 64, 64}, 2},
                    {2.43173896417, 9201.60660998, -12.296550209, 1018.14430129});
  expect_near(measured.statistics(), 68254.5002, "running statistics");
}

TEST(Golden, AmoebaNetD) {
  expect_golden({"amoebanet_d", "{classes: 10, cells: 3, filters: 64}", true, {2, 3, 224, 224}},
                {0.0636009088237, 5.95756716433, 0.202214957376, 1.41223029091});
}

TEST(Golden, AmoebaNetDInTwoMicroBatches) {
  expect_golden({"amoebanet_d", "{classes: 10, cells: 3, filters: 64}", true, {4, 3, 224, 224}, 2},
                {0.0804988582941, 4.99607614253, NAN, NAN});
}

TEST(Golden, AmoebaNetDOfSixCells) {
  expect_golden({"amoebanet_d", "{classes: 10, cells: 6, filters: 64}", true, {2, 3, 224, 224}},
                {0.0508522391336, 23.9036031517, 0.255985601747, 5.91707268393});
}

TEST(Golden, UNetInAnyMicroBatches) {
  for (const int microbatches : {1, 2, 4})
    expect_golden({"unet",
                   "{convolutions: 2, base_channels: 4, size: 64}",
                   false,
                   {4, 3, 64, 64},
                   microbatches},
                  {1.01856899165, 3.89976573946, -10732.8558625, 0.717693630911});
}

TEST(Golden, UNetWithMapsThatDoNotHalve) {
  for (const int microbatches : {1, 2})
    expect_golden({"unet",
                   "{depth: 3, convolutions: 1, base_channels: 8, size: 36}",
                   false,
                   {2, 3, 36, 44},
                   microbatches},
                  {2.06963885153, 3.86968210866, 3187.58407486, 0.28677535262});
}

}  // namespace
}  // namespace pipewright::test
