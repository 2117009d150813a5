// SPDX-License-Identifier: Apache-2.0
/// The oracle's gradients: against finite differences, and with backward weights of their own.
#include "mlp.h"
#include "cases.h"
#include "loss.h"
#include "random.h"
#include "tolerances.h"

#include <gtest/gtest.h>

namespace oracle {
namespace {

constexpr double kSmoothing = 0.1;
constexpr double kStep = tolerance::kStep;

class MultilayerPerceptron : public testing::TestWithParam<Activation> {
 protected:
  MultilayerPerceptron() {
    experiment_.widths = {4, 6, 5, 3};
    experiment_.balance = {3};
    experiment_.activation = GetParam();
    experiment_.train_samples = 7;
    layers_ = layers_of_stage(experiment_, 0);
    parameters_ = initial_weights(experiment_)[0];
    data_ = training_data(experiment_);
  }

  double loss(const Tensors& parameters, const Matrix& x) const {
    return cross_entropy(forward(layers_, parameters, x).output, data_.y, kSmoothing, x.rows())
        .value;
  }

  Experiment experiment_;
  Layers layers_;
  Tensors parameters_;
  Data data_;
};

TEST_P(MultilayerPerceptron, GradientsAreThoseOfFiniteDifferences) {
  const Trace trace = forward(layers_, parameters_, data_.x);
  const Loss at = cross_entropy(trace.output, data_.y, kSmoothing, data_.x.rows());
  Tensors gradients = zeros_like(parameters_);
  const Matrix input_gradient = backward(layers_, parameters_, trace, at.gradient, 1.0, gradients);

  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (Eigen::Index j = 0; j < parameters_[i].size(); ++j) {
      Tensors up = parameters_, down = parameters_;
      up[i].data()[j] += kStep;
      down[i].data()[j] -= kStep;
      const double slope = (loss(up, data_.x) - loss(down, data_.x)) / (2 * kStep);
      EXPECT_NEAR(gradients[i].data()[j], slope, tolerance::kSlope)
          << "tensor " << i << "[" << j << "]";
    }
  for (Eigen::Index j = 0; j < data_.x.size(); ++j) {
    Matrix up = data_.x, down = data_.x;
    up.data()[j] += kStep;
    down.data()[j] -= kStep;
    const double slope = (loss(parameters_, up) - loss(parameters_, down)) / (2 * kStep);
    EXPECT_NEAR(input_gradient.data()[j], slope, tolerance::kSlope) << "input [" << j << "]";
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, MultilayerPerceptron,
                         testing::Values(Activation::Relu, Activation::Tanh, Activation::Identity));

TEST(Backward, UsesItsOwnMatricesForInputGradientsOnly) {
  const Layers layers{Activation::Tanh, Activation::Identity};
  const auto scalar = [](double value) { return Matrix::Constant(1, 1, value); };
  const Tensors W{scalar(0.5), scalar(0.1), scalar(2), scalar(0)};
  const Tensors V{scalar(7), scalar(100), scalar(3), scalar(100)};  // biases must not matter
  const Trace trace = forward(layers, W, scalar(0.8));              // z_0 = 0.5
  Tensors gradients = zeros_like(W);
  const Matrix input_gradient = backward(layers, V, trace, scalar(1.5), 1.0, gradients);

  const double a = std::tanh(0.5), inner = 1.5 * 3 * (1 - a * a);
  EXPECT_DOUBLE_EQ(gradients[2](0, 0), 1.5 * a);
  EXPECT_DOUBLE_EQ(gradients[3](0, 0), 1.5);
  EXPECT_DOUBLE_EQ(gradients[0](0, 0), inner * 0.8);
  EXPECT_DOUBLE_EQ(gradients[1](0, 0), inner);
  EXPECT_DOUBLE_EQ(input_gradient(0, 0), inner * 7);
}

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheClassesWhateverTheSmoothing) {
  const std::vector<int> labels{0, 2};
  const Loss loss = cross_entropy(Matrix::Zero(2, 4), labels, 0.3, 2);
  EXPECT_DOUBLE_EQ(loss.value, std::log(4.0));
  EXPECT_DOUBLE_EQ(loss.gradient(0, 0), 0.5 * (0.25 - (0.7 + 0.075)));
  EXPECT_DOUBLE_EQ(loss.gradient(0, 1), 0.5 * (0.25 - 0.075));
}

TEST(CrossEntropy, OfMicroBatchesAddsUpToThatOfTheMiniBatch) {
  const std::vector<int> labels{0, 2, 1};
  Matrix logits(3, 3);
  logits << 1, 2, 3, -1, 0, 4, 2, 2, 0;
  const Loss whole = cross_entropy(logits, labels, 0.1, 3);
  const Loss head = cross_entropy(logits.topRows(2), std::span(labels).first(2), 0.1, 3);
  const Loss tail = cross_entropy(logits.bottomRows(1), std::span(labels).last(1), 0.1, 3);
  EXPECT_NEAR(whole.value, head.value + tail.value, tolerance::kFewOperations);
  EXPECT_TRUE(whole.gradient.bottomRows(1).isApprox(tail.gradient, tolerance::kFewOperations));
}

TEST(BinaryCrossEntropy, OfLogitsOfZeroIsTheLogarithmOfTwoAndPullsEachLabelItsWay) {
  const std::vector<int> labels{1};
  const Loss loss = binary_cross_entropy(Matrix::Zero(1, 2), labels, 1);
  EXPECT_DOUBLE_EQ(loss.value, std::log(2.0));
  EXPECT_DOUBLE_EQ(loss.gradient(0, 0), 0.5 * 0.5);
  EXPECT_DOUBLE_EQ(loss.gradient(0, 1), 0.5 * (0.5 - 1));
}

}  // namespace
}  // namespace oracle
