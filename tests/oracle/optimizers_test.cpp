// SPDX-License-Identifier: Apache-2.0
/// The oracle's optimizers and predictions, by hand, for one scalar parameter.
#include "optimizers.h"
#include "learning_rate.h"
#include "tolerances.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace oracle {
namespace {

Tensors scalar(double value) {
  return {Matrix::Constant(1, 1, value)};
}
double value(const Tensors& tensors) {
  return tensors[0](0, 0);
}

/// The state after steps with the given gradients from W = 1.
State after(const OptimizerOptions& options, const std::vector<double>& gradients, double lr) {
  State state = initial_state(scalar(1));
  for (const double g : gradients) state = step(options, state, scalar(g), lr);
  return state;
}

double predicted(const OptimizerOptions& options, const State& state, int ahead, double lr,
                 const std::string& velocity = "buffer", Pass pass = Pass::Forward,
                 bool decay = false) {
  SchemeOptions scheme;
  scheme.velocity = velocity;
  scheme.adamw_decay_in_prediction = decay;
  return value(predict(options, scheme, state, ahead, pass, lr));
}

const OptimizerOptions kDamped{
    .name = "sgd", .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1};

TEST(Sgd, FirstBufferIsTheGradientWithoutDampening) {
  const State one = after(kDamped, {2}, 0.1);
  EXPECT_DOUBLE_EQ(value(one.first), 2.1);
  EXPECT_DOUBLE_EQ(value(one.weights), 0.79);
  const State two = after(kDamped, {2, 1}, 0.1);
  EXPECT_DOUBLE_EQ(value(two.last), 1 + 0.1 * 0.79);
  EXPECT_DOUBLE_EQ(value(two.first), 0.9 * 2.1 + 0.5 * 1.079);
  EXPECT_DOUBLE_EQ(value(two.weights), 0.79 - 0.1 * (0.9 * 2.1 + 0.5 * 1.079));
}

TEST(Sgd, NesterovStepsByGradientPlusMomentumTimesBuffer) {
  const OptimizerOptions options{.name = "sgd", .momentum = 0.5, .nesterov = true};
  EXPECT_DOUBLE_EQ(value(after(options, {2, 4}, 0.1).weights),
                   1 - 0.1 * (2 + 0.5 * 2) - 0.1 * (4 + 0.5 * 5));
}

TEST(Adam, FirstStepIsTheLearningRateAndDecayActsOnGradientOrWeight) {
  const OptimizerOptions adam{.name = "adam", .weight_decay = 0.1, .eps = 0};
  EXPECT_NEAR(value(after(adam, {-0.05}, 0.01).weights), 0.99,
              tolerance::kFewOperations);  // g' = +0.05
  const OptimizerOptions adamw{.name = "adamw", .weight_decay = 0.1, .eps = 0};
  EXPECT_NEAR(value(after(adamw, {-0.05}, 0.01).weights), 1 - 0.001 + 0.01,
              tolerance::kFewOperations);
}

TEST(Adam, SecondStepHasPyTorchsBiasCorrections) {
  const OptimizerOptions options{.name = "adam", .beta1 = 0.5, .beta2 = 0.75, .eps = 0.1};
  const double m = 0.5 * (0.5 * 2) + 0.5 * 4, u = 0.75 * (0.25 * 4) + 0.25 * 16;
  const double first = 1 - 0.01 * 2 / (2 + 0.1);
  EXPECT_NEAR(value(after(options, {2, 4}, 0.01).weights),
              first - 0.01 * (m / 0.75) / (std::sqrt(u / 0.4375) + 0.1), tolerance::kFewOperations);
}

TEST(RmsProp, DividesByTheRootOfTheMeanSquareAndPredictsAlongItsBuffer) {
  const OptimizerOptions options{
      .name = "rmsprop", .momentum = 0.5, .weight_decay = 1, .eps = 0.1, .alpha = 0.75};
  const double first = 2 / (std::sqrt(0.25 * 4) + 0.1);  // g' = 1 + λW = 2
  const State one = after(options, {1}, 0.1);
  EXPECT_DOUBLE_EQ(value(one.weights), 1 - 0.1 * first);
  EXPECT_DOUBLE_EQ(predicted(options, one, 3, 0.1), 1 - 4 * 0.1 * first);
  const double g = 1 + value(one.weights), u = 0.75 + 0.25 * g * g;
  EXPECT_DOUBLE_EQ(value(after(options, {1, 1}, 0.1).weights),
                   value(one.weights) - 0.1 * (0.5 * first + g / (std::sqrt(u) + 0.1)));
}

TEST(Lion, StepsByTheSignOfAMixtureAndKeepsAnother) {
  const OptimizerOptions options{.name = "lion", .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75};
  const State one = after(options, {2}, 0.1);
  EXPECT_DOUBLE_EQ(value(one.weights), 1 - 0.05 - 0.1);
  EXPECT_DOUBLE_EQ(value(one.first), 0.5);
  const State two = after(options, {2, -0.25}, 0.1);  // sign(0.25 − 0.125)
  EXPECT_DOUBLE_EQ(value(two.weights), 0.85 * 0.95 - 0.1);
  EXPECT_DOUBLE_EQ(predicted(options, two, 3, 0.1), value(two.weights) - 0.3);
}

TEST(NAdamW, FirstStepMixesGradientAndMeanByTheMomentaOfTwoSteps) {
  const OptimizerOptions options{.name = "nadamw",
                                 .weight_decay = 0.5,
                                 .beta1 = 0.5,
                                 .beta2 = 0.75,
                                 .eps = 0,
                                 .momentum_decay = 1};
  const double mu1 = 0.5 * (1 - 0.5 * 0.96), mu2 = 0.5 * (1 - 0.5 * 0.96 * 0.96);
  EXPECT_NEAR(value(after(options, {2}, 0.1).weights),
              1 - 0.05 - 0.1 * ((1 - mu1) / (1 - mu1) * 2 + mu2 / (1 - mu1 * mu2) * 1) / 2,
              tolerance::kFewOperations);
}

TEST(Adan, SecondStepSeesTheDifferenceOfGradients) {
  const OptimizerOptions options{
      .name = "adan", .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75, .beta3 = 0.5, .eps = 0.1};
  const double first = (1 - 0.1 * 2 / (2 + 0.1)) / 1.05;
  EXPECT_NEAR(value(after(options, {2}, 0.1).weights), first, tolerance::kFewOperations);
  const double m = 0.5 * 1 + 0.5 * 4, v = 0.25 * 2, n = 0.5 * 2 + 0.5 * 5.5 * 5.5;
  EXPECT_NEAR(value(after(options, {2, 4}, 0.1).weights),
              (first - 0.1 * (m / 0.75 + 0.75 * v / 0.4375) / (std::sqrt(n / 0.75) + 0.1)) / 1.05,
              tolerance::kFewOperations);
}

TEST(Muon, OrthogonalizesWeightsAndStepsBiasesAsAdam) {
  const OptimizerOptions options{.name = "muon", .momentum = 0.5};
  const auto gradient = [](double a, double b) {
    Matrix g = Matrix::Zero(2, 2);
    g(0, 1) = a;
    g(1, 0) = b;
    return Tensors{g, Matrix::Constant(1, 2, 3)};
  };
  const State state =
      step(options, initial_state({Matrix::Zero(2, 2), Matrix::Zero(1, 2)}), gradient(7, 7), 0.1);
  // Both singular values are 1/√2 at first: five times x ← 3.4445x − 4.775x³ + 2.0315x⁵.
  double x = std::sqrt(0.5);
  for (int i = 0; i < 5; ++i) x = x * (3.4445 - 4.7750 * x * x + 2.0315 * x * x * x * x);
  EXPECT_NEAR(state.weights[0](0, 1), -0.1 * x, tolerance::kSteps);
  EXPECT_EQ(state.weights[0](0, 0), 0);
  EXPECT_NEAR(state.weights[1](0, 0), -0.1 * 3 / (3 + 1e-8), tolerance::kFewOperations);
}

/// Diagonal gradients have the unit vectors for their bases: Adam, but for the step that is left
/// out.
TEST(Soap, IsAdamForDiagonalGradientsAfterTheFirst) {
  const OptimizerOptions options{.name = "soap", .beta1 = 0.5, .beta2 = 0.75, .eps = 0.1};
  const auto gradient = [](double a, double b) {
    Matrix g = Matrix::Zero(2, 2);
    g(0, 0) = a;
    g(1, 1) = b;
    return Tensors{g, Matrix::Constant(1, 2, 3)};
  };
  const auto start = initial_state({Matrix::Zero(2, 2), Matrix::Zero(1, 2)});
  const State first = step(options, start, gradient(7, 8), 0.1);
  EXPECT_EQ(first.weights[0].norm(), 0);
  const State second = step(options, first, gradient(2, -4), 0.1);
  const double size = std::sqrt(0.25) / 0.5;  // of m = g/2 and u = g²/4
  EXPECT_NEAR(second.weights[0](0, 0), -0.1 * size * 1 / (1 + 0.1), tolerance::kSteps);
  EXPECT_NEAR(second.weights[0](1, 1), 0.1 * size * 2 / (2 + 0.1), tolerance::kSteps);
  EXPECT_NEAR(second.weights[0](0, 1), 0, tolerance::kSteps);
  EXPECT_NEAR(second.weights[1](0, 0), -0.1 * size * 1.5 / (1.5 + 0.1), tolerance::kSteps);
}

TEST(Prediction, IsNothingBeforeTheFirstStepOrZeroStepsAhead) {
  for (const char* name : {"sgd", "adam", "adamw", "lion", "nadamw", "adan", "muon"}) {
    const OptimizerOptions options{.name = name, .momentum = 0.9, .weight_decay = 0.1};
    EXPECT_EQ(predicted(options, initial_state(scalar(1)), 3, 0.1, "buffer", Pass::Forward, true),
              1);
    const State state = after(options, {2}, 0.1);
    EXPECT_EQ(predicted(options, state, 0, 0.1), value(state.weights));
  }
}

TEST(Prediction, OfSgdFollowsTheChosenVelocityAndTheNextLearningRate) {
  const State state = after(kDamped, {2, 1}, 0.1);
  const double W = value(state.weights), v = value(state.first), g = value(state.last);
  EXPECT_DOUBLE_EQ(predicted(kDamped, state, 3, 0.2), W - 0.2 * 3 * v);
  EXPECT_DOUBLE_EQ(predicted(kDamped, state, 3, 0.2, "lookahead"),
                   W - 0.2 * 3 * (0.9 * v + 0.5 * g));
  EXPECT_DOUBLE_EQ(predicted(kDamped, state, 3, 0.2, "lookahead", Pass::Backward),
                   W - 0.2 * 3 * 0.9 * v);
  EXPECT_DOUBLE_EQ(predicted(kDamped, state, 3, 0.2, "geometric"),
                   W - 0.2 * (0.9 + 0.81 + 0.729) * v);
}

TEST(Prediction, IsExactForConstantGradients) {
  const OptimizerOptions adam{.name = "adam"}, plain{.name = "sgd"};
  const std::vector<double> six(6, 0.7), nine(9, 0.7);
  EXPECT_NEAR(predicted(adam, after(adam, six, 0.01), 3, 0.01),
              value(after(adam, nine, 0.01).weights), tolerance::kSteps);
  EXPECT_NEAR(predicted(plain, after(plain, six, 0.01), 3, 0.01),
              value(after(plain, nine, 0.01).weights), tolerance::kSteps);
}

TEST(Prediction, GeometricIsExactForZeroGradients) {
  const OptimizerOptions options{.name = "sgd", .momentum = 0.9};
  EXPECT_NEAR(predicted(options, after(options, {2}, 0.1), 3, 0.1, "geometric"),
              value(after(options, {2, 0, 0, 0}, 0.1).weights), tolerance::kFewOperations);
}

TEST(Prediction, OfAdamWHasTheDecayTermOnRequest) {
  const OptimizerOptions options{.name = "adamw", .weight_decay = 0.1};
  const State state = after(options, {2}, 0.01);
  EXPECT_NEAR(predicted(options, state, 2, 0.02) -
                  predicted(options, state, 2, 0.02, "buffer", Pass::Forward, true),
              0.02 * 2 * 0.1 * value(state.weights), tolerance::kFewOperations);
}

TEST(LearningRate, HasTheNamedCurves) {
  Experiment e;
  e.train_samples = e.epochs = 4;  // four epochs of four mini-batches
  e.batch_size = 1;
  e.optimizer.lr = 0.8;
  const auto at = [&e](const LearningRateOptions& options, int minibatch) {
    e.learning_rate = options;
    return learning_rate(e, minibatch);
  };
  EXPECT_DOUBLE_EQ(at({.name = "poly", .power = 2}, 11), 0.8 * 0.25);
  EXPECT_DOUBLE_EQ(at({.name = "poly", .per = "step", .power = 2, .end_lr = 0.4}, 8),
                   0.4 + 0.4 * 0.25);
  EXPECT_DOUBLE_EQ(at({.name = "step", .size = 2, .gamma = 0.5}, 15), 0.4);
  EXPECT_DOUBLE_EQ(at({.name = "multistep", .per = "step", .milestones = {3, 5}, .gamma = 0.5}, 3),
                   0.4);
  EXPECT_DOUBLE_EQ(at({.name = "multistep", .per = "step", .milestones = {3, 5}, .gamma = 0.5}, 5),
                   0.2);
  EXPECT_DOUBLE_EQ(at({.name = "cosine", .end_lr = 0.2}, 8), 0.5);
  EXPECT_DOUBLE_EQ(at({.name = "linear"}, 12), 0.2);
  EXPECT_DOUBLE_EQ(at({.per = "step", .warmup_length = 4, .warmup_start = 0.5}, 2), 0.6);
  EXPECT_DOUBLE_EQ(at({.per = "step", .warmup_length = 4, .warmup_start = 0.5}, 4), 0.8);
}

TEST(WeightDecay, LeavesBiasesOutWhereAsked) {
  const OptimizerOptions sgd{.name = "sgd", .weight_decay = 0.5, .biases_decay = false};
  const State before = initial_state({Matrix::Constant(1, 1, 2), Matrix::Constant(1, 1, 2)});
  const State after = step(sgd, before, zeros_like(before.weights), 0.1);
  EXPECT_DOUBLE_EQ(after.weights[0](0, 0), 2 - 0.1 * 0.5 * 2);
  EXPECT_DOUBLE_EQ(after.weights[1](0, 0), 2);
}

}  // namespace
}  // namespace oracle
