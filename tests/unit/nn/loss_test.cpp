// SPDX-License-Identifier: Apache-2.0
// Losses: means over samples.
#include "core/nn/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

std::unique_ptr<Loss> make_loss(const std::string& name, const std::string& text) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "loss", problems);
  auto loss = Registry<Loss>::instance().find(name)->make(options);
  EXPECT_TRUE(problems.empty());
  return loss;
}

std::unique_ptr<Loss> cross_entropy(const std::string& text = "{}") {
  return make_loss("cross_entropy", text);
}

std::unique_ptr<Loss> binary_cross_entropy() {
  return make_loss("binary_cross_entropy", "{}");
}

std::string refusal(const Loss& loss, const at::Tensor& output, const at::Tensor& target) {
  try {
    loss(output, target);
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::Experiment));
    return error.what();
  }
  return "";
}

const at::Tensor kTargets = at::tensor({2, 0, 1, 2}, at::kLong);

TEST(RealTargets, HaveTheMeanOfSquaresOrOfDistances) {
  const at::Tensor output = at::tensor({1.0, 2.0, -1.0, 0.5}).view({2, 2}),
                   target = at::tensor({0.0, 2.0, 1.0, 0.0}).view({2, 2});
  // differences 1, 0, -2, 0.5
  EXPECT_EQ((*make_loss("mse", "{}"))(output, target).item<double>(), (1 + 4 + 0.25) / 4);
  EXPECT_EQ((*make_loss("l1", "{}"))(output, target).item<double>(), (1 + 2 + 0.5) / 4);
}

TEST(RealTargets, HaveTheLossesDerivatives) {
  const at::Tensor target = at::tensor({0.0, 2.0, 1.0, 0.0}, at::kFloat).view({2, 2});
  const auto gradient = [&](const char* name) {
    at::Tensor output = at::tensor({1.0, 2.0, -1.0, 0.5}).view({2, 2}).requires_grad_();
    (*make_loss(name, "{}"))(output, target).backward();
    return output.grad().flatten();
  };
  EXPECT_TRUE(gradient("mse").equal(at::tensor({0.5, 0.0, -1.0, 0.25})));
  EXPECT_TRUE(gradient("l1").equal(at::tensor({0.25, 0.0, -0.25, 0.25})));
}

TEST(RealTargets, FitNoOtherTaskAndNoOtherNumberOfOutputs) {
  const auto mse = make_loss("mse", "{}");
  EXPECT_TRUE(mse->fits(Task::Regress));
  EXPECT_FALSE(mse->fits(Task::Classify));
  EXPECT_FALSE(mse->fits(Task::Minimize));
  EXPECT_FALSE(cross_entropy()->fits(Task::Regress));
  EXPECT_FALSE(make_loss("output", "{}")->fits(Task::Regress));
  EXPECT_NE(refusal(*mse, at::zeros({4, 3}), at::zeros({4, 1})).find("shape 3, its targets 1"),
            std::string::npos)
      << refusal(*mse, at::zeros({4, 3}), at::zeros({4, 1}));
}

TEST(CrossEntropy, IsTheMeanNegativeLogOfTheTargetsSoftmax) {
  const at::Tensor z = random({4, 3}, 1);
  double sum = 0;
  for (std::int64_t i = 0; i < 4; ++i)
    sum -= z[i][kTargets[i].item<std::int64_t>()].item<double>() -
           std::log(z[i].exp().sum().item<double>());
  EXPECT_NEAR((*cross_entropy())(z, kTargets).item<double>(), sum / 4, kFloat64Relative);
}

TEST(CrossEntropy, MixesInTheUniformDistributionWithLabelSmoothing) {
  const at::Tensor z = random({4, 3}, 1), log_p = z.log_softmax(1);
  const double hard = (*cross_entropy())(z, kTargets).item<double>();
  const double uniform = -log_p.mean().item<double>();
  EXPECT_NEAR((*cross_entropy("{label_smoothing: 0.1}"))(z, kTargets).item<double>(),
              0.9 * hard + 0.1 * uniform, kFloat64Relative);
}

TEST(CrossEntropy, OfPartsAveragesToTheWholeByTheirSamples) {
  const auto loss = cross_entropy();
  const at::Tensor z = random({4, 3}, 1);
  const double a = (*loss)(z.narrow(0, 0, 3), kTargets.narrow(0, 0, 3)).item<double>();
  const double b = (*loss)(z.narrow(0, 3, 1), kTargets.narrow(0, 3, 1)).item<double>();
  EXPECT_NEAR((*loss)(z, kTargets).item<double>(), 0.75 * a + 0.25 * b, kFloat64Relative);
}

TEST(CrossEntropy, OfSeveralTargetsIsAMeanOverSamplesOfTheirMeansOrSums) {
  const at::Tensor z = random({2, 3, 4}, 2);
  const at::Tensor targets = at::tensor({1, 2, -100, 3, 0, 2}, at::kLong).view({2, 3});
  const at::Tensor log_p = z.log_softmax(2);
  const auto p = [&](int sample, int token, int target) {
    return log_p[sample][token][target].item<double>();
  };
  const double first = -p(0, 0, 1) - p(0, 1, 2), second = -p(1, 0, 3) - p(1, 1, 0) - p(1, 2, 2);
  EXPECT_NEAR((*cross_entropy())(z, targets).item<double>(), (first / 2 + second / 3) / 2,
              kFloat64Relative);
  EXPECT_NEAR((*cross_entropy("{tokens: sum}"))(z, targets).item<double>(), (first + second) / 2,
              kFloat64Relative);
}

TEST(CrossEntropy, OverTokensIsTheMeanOfAllTargetsThatAreNotLeftOut) {
  const at::Tensor z = random({2, 3, 4}, 2), log_p = z.log_softmax(2);
  const at::Tensor targets = at::tensor({1, -100, -100, 3, 0, 2}, at::kLong).view({2, 3});
  const auto p = [&](int sample, int token, int target) {
    return log_p[sample][token][target].item<double>();
  };
  const auto loss = cross_entropy("{average: tokens}");
  const double sum = -p(0, 0, 1) - p(1, 0, 3) - p(1, 1, 0) - p(1, 2, 2);
  EXPECT_TRUE(loss->over_minibatch());
  EXPECT_FALSE(cross_entropy()->over_minibatch());
  EXPECT_NEAR((*loss)(z, targets).item<double>(), sum / 4, kFloat64Relative);
  EXPECT_EQ((*loss)(z, at::full_like(targets, kNoTarget)).item<double>(), 0);
}

TEST(CrossEntropy, OverTokensOfPartsAveragesToThatOfTheMiniBatchByTheirSamples) {
  const auto loss = cross_entropy("{average: tokens}");
  const at::Tensor z = random({4, 3, 5}, 3);
  at::Tensor targets = at::arange(12, at::kLong).remainder(5).view({4, 3});
  targets[0].fill_(kNoTarget);
  targets[3].narrow(0, 1, 2).fill_(kNoTarget);
  const auto part = [&](int first, int samples) {
    const PassTargets of{targets.narrow(0, first, samples), targets};
    return loss->of_pass(z.narrow(0, first, samples), of).item<double>();
  };
  EXPECT_NEAR((*loss)(z, targets).item<double>(), 0.75 * part(0, 3) + 0.25 * part(3, 1),
              kFloat64Relative);
}

TEST(CrossEntropy, HasNoMeanOverTokensThatAreSummed) {
  const Value document = parse_yaml("{average: tokens, tokens: sum}", "test");
  Problems problems;
  Options options(&document, "loss", problems);
  Registry<Loss>::instance().find("cross_entropy")->make(options);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_NE(std::string(problems.errors()[0].what()).find("needs tokens: mean"), std::string::npos);
}

TEST(CrossEntropy, SaysThatMapsNeedAnotherLoss) {
  EXPECT_NE(refusal(*cross_entropy(), random({4, 1, 2, 3}, 1), kTargets)
                .find("1×2×3; for maps set loss: {name: binary_cross_entropy}"),
            std::string::npos);
}

const at::Tensor kBinaryTargets = at::tensor({1, 0, 1, 0}, at::kLong);

TEST(BinaryCrossEntropy, IsTheMeanOverPixelsOfTheirNegativeLogLikelihood) {
  const at::Tensor z = random({4, 1, 2, 3}, 1) * 4;
  double sum = 0;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t pixel = 0; pixel < 6; ++pixel) {
      const double logit = z.view({4, 6})[i][pixel].item<double>();
      sum += std::log1p(std::exp(i % 2 == 0 ? -logit : logit));
    }
  EXPECT_NEAR((*binary_cross_entropy())(z, kBinaryTargets).item<double>(), sum / 24,
              kFloat64Relative);
}

TEST(BinaryCrossEntropy, TakesOneOutputPerSample) {
  const at::Tensor z = at::tensor({0.0, 1000.0, 1000.0, -1000.0}).view({4, 1});
  EXPECT_NEAR((*binary_cross_entropy())(z, kBinaryTargets).item<double>(),
              (std::log(2.0) + 1000) / 4, kFloat64Relative * 250);
}

TEST(BinaryCrossEntropy, HasTheSigmoidMinusTheTargetAsItsGradient) {
  const at::Tensor z = random({4, 1, 2, 3}, 1).set_requires_grad(true);
  const at::Tensor loss = (*binary_cross_entropy())(z, kBinaryTargets);
  const at::Tensor y = kBinaryTargets.to(at::kDouble).view({4, 1, 1, 1});
  const at::Tensor expected = (1 / (1 + (-z.detach()).exp()) - y) / 24;
  EXPECT_LT(relative_error(torch::autograd::grad({loss}, {z})[0], expected), kFloat64Relative);
}

TEST(BinaryCrossEntropy, TakesALogitForEachLabelOfASample) {
  const at::Tensor z = at::tensor({0.0, 2.0, -1.0, 0.0}).view({2, 2}),
                   y = at::tensor({1, 0, 0, 1}, at::kByte).view({2, 2});
  EXPECT_NEAR((*binary_cross_entropy())(z, y).item<double>(),
              (2 * std::log(2.0) + std::log1p(std::exp(2.0)) + std::log1p(std::exp(-1.0))) / 4,
              kFloat64Relative);
  EXPECT_NE(refusal(*binary_cross_entropy(), random({2, 3}, 1), y).find("shape 3, its labels 2"),
            std::string::npos);
}

TEST(OutputLoss, IsTheMeanOfTheOutputs) {
  const auto loss = make_loss("output", "{}");
  const at::Tensor z = random({4, 1}, 1);
  EXPECT_NEAR((*loss)(z, kTargets).item<double>(), z.sum().item<double>() / 4, kFloat64Relative);
  EXPECT_NE(refusal(*loss, random({4, 3}, 1), kTargets).find("has the shape 3"), std::string::npos);
}

TEST(Losses, FitTheTasksThatTheyAreFor) {
  EXPECT_TRUE(make_loss("output", "{}")->fits(Task::Minimize));
  EXPECT_FALSE(make_loss("output", "{}")->fits(Task::Classify));
  EXPECT_TRUE(cross_entropy()->fits(Task::Continue));
  EXPECT_FALSE(cross_entropy()->fits(Task::Minimize));
  EXPECT_FALSE(cross_entropy()->fits(Task::Label));
  EXPECT_TRUE(binary_cross_entropy()->fits(Task::Label));
  EXPECT_TRUE(binary_cross_entropy()->fits(Task::Classify));
  EXPECT_FALSE(binary_cross_entropy()->fits(Task::Continue));
}

TEST(BinaryCrossEntropy, SaysThatScoresOfClassesNeedAnotherLoss) {
  EXPECT_NE(
      refusal(*binary_cross_entropy(), random({4, 3}, 1), kBinaryTargets)
          .find("has the shape 3; expected a model of one output, or loss: {name: cross_entropy}"),
      std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
