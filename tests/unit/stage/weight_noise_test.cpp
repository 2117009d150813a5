// SPDX-License-Identifier: Apache-2.0
// Noise on the weights that passes read: its size, what it depends on, and what it leaves alone.
#include "core/stage/weight_noise.h"

#include <gtest/gtest.h>

#include "tests/unit/stage/stage_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

constexpr double kSize = 0.1;
constexpr std::int64_t kWeights = 100'000;

/// Of a parameter with that name.
at::Tensor factors_of(const std::string& name, const Pass& pass, std::int64_t size = kWeights,
                      double sigma = kSize) {
  const FlatLayout layout = flat_layout({{name, {size}}}, 8);
  WeightNoise noise(sigma, layout, at::kDouble);
  return noise.factors(pass).narrow(0, 0, size).clone();
}

double mean_value(const at::Tensor& numbers) {
  return numbers.mean().item<double>();
}

/// The first moments of N(0, 1) are 0, 1, 0 and 3. The variances of x, x², x³ and x⁴ are
/// E x²ᵏ − (E xᵏ)², with the moments 1, 3, 15 and 105: 1, 2, 15 and 96.
TEST(WeightNoise, IsNormalAndHasItsSize) {
  const at::Tensor n = (factors_of("w", {}) - 1) / kSize;
  const double count = kWeights;
  EXPECT_NEAR(mean_value(n), 0, tolerance::mean_of(count, 1));
  EXPECT_NEAR(mean_value(n.pow(2)), 1, tolerance::mean_of(count, 2));
  EXPECT_NEAR(mean_value(n.pow(3)), 0, tolerance::mean_of(count, 15));
  EXPECT_NEAR(mean_value(n.pow(4)), 3, tolerance::mean_of(count, 96));
}

/// |w̃ − w|² = σ² Σ wᵢ²nᵢ², whose mean is σ²|w|² and whose variance is 2σ⁴ Σ wᵢ⁴.
TEST(WeightNoise, IsThatPartOfTheLengthOfATensor) {
  const at::Tensor w = random({kWeights}, 5).to(at::kDouble);
  const double squares = w.pow(2).sum().item<double>(), fourths = w.pow(4).sum().item<double>();
  for (const double size : {0.01, 2.0}) {
    const at::Tensor noise = w * factors_of("w", {}, kWeights, size) - w;
    const double part = noise.pow(2).sum().item<double>() / (size * size * squares);
    EXPECT_NEAR(part, 1, tolerance::kSigmas * std::sqrt(2 * fourths) / squares) << size;
  }
}

/// Independent: the mean product of two sets of n numbers has variance 1/n.
TEST(WeightNoise, IsAnotherForEachMicroBatchMiniBatchEpochSeedAndParameter) {
  const at::Tensor n = (factors_of("w", {}) - 1) / kSize;
  const double tolerance = tolerance::mean_of(static_cast<double>(kWeights), 1);
  const std::vector<at::Tensor> others{
      factors_of("w", {.first_sample = 8}), factors_of("w", {.minibatch = 1}),
      factors_of("w", {.epoch = 1}), factors_of("w", {.seed = 1}), factors_of("v", {})};
  for (std::size_t i = 0; i < others.size(); ++i)
    EXPECT_NEAR(mean_value(n * (others[i] - 1) / kSize), 0, tolerance) << i;
}

TEST(WeightNoise, IsTheSameForAllPassesOfAMicroBatch) {
  const FlatLayout layout = flat_layout({{"w", {5}}, {"v", {2, 3}}}, 8);
  WeightNoise noise(kSize, layout, at::kDouble);
  const Pass one{.epoch = 2, .minibatch = 3, .first_sample = 4}, other{.minibatch = 7};
  const at::Tensor first = noise.factors(one).clone();
  EXPECT_FALSE(at::equal(noise.factors(other), first));
  EXPECT_TRUE(at::equal(noise.factors(one), first));
  EXPECT_TRUE(at::equal(layout.entries[0].view(first), factors_of("w", one, 5)))
      << "it does not depend on the other parameters of a stage";
}

TEST(WeightNoise, DoesNotDependOnTheOrderInMemory) {
  FlatLayout layout = flat_layout({{"w", {4, 3, 2, 2}}}, 8);
  const auto factors = [&] {
    WeightNoise noise(kSize, layout, at::kDouble);
    return layout.entries[0].view(noise.factors({})).contiguous();
  };
  const at::Tensor contiguous = factors();
  layout.entries[0].channels_last = true;
  EXPECT_TRUE(at::equal(factors(), contiguous));
}

class NoisyStage : public StageTest {
 protected:
  Stage noisy(std::optional<at::ScalarType> narrow = {}) const {
    return Stage({.layers = named({linear(3, 2)}),
                  .options = narrow ? at::kFloat : at::kDouble,
                  .narrow = narrow,
                  .optimizer = optimizer_.get(),
                  .loss = loss_.get(),
                  .perturbation = {.weight_noise = kSize}},
                 1);
  }
  static at::Tensor read(Stage& s, std::size_t parameter = 0) {
    return s.weights().leaves()[parameter].detach().clone();
  }
  static constexpr WeightKey kFirst{};
};

TEST_F(NoisyStage, ComputesWithTheNoiseThatIsInstalled) {
  Stage s = noisy();
  const at::Tensor stored = value(s, "0.weight"), g = random({4, 2}, 2);
  const Pass pass{.minibatch = 1}, another{.minibatch = 2};
  s.install(kFirst, pass);
  const at::Tensor with_noise = read(s), bias = read(s, 1);
  EXPECT_FALSE(at::equal(with_noise, stored));
  const Tensors outputs = s.forward(0, {x_.clone()}, pass, true);
  EXPECT_TRUE(at::equal(outputs[0], at::linear(x_, with_noise, bias)));
  s.install(kFirst, another);
  EXPECT_FALSE(at::equal(read(s), with_noise));
  s.install(kFirst, pass);
  const Tensors of_input = s.backward(0, {.gradients = {g}, .input_gradient = true});
  EXPECT_LT(relative_error(of_input[0], at::matmul(g, with_noise)), kFloat64Relative);
  EXPECT_LT(relative_error(s.gradients()[0], at::matmul(g.t(), x_)), kFloat64Relative);
  EXPECT_TRUE(at::equal(value(s, "0.weight"), stored));
}

TEST_F(NoisyStage, UpdatesTheWeightsWithoutNoise) {
  Stage s = noisy(), plain = stage({linear(3, 2)});
  for (Stage* each : {&s, &plain}) {
    each->install(kFirst, {});
    each->gradients() = {at::ones({2, 3}, at::kDouble), at::ones({2}, at::kDouble)};
    each->update(true, 0.1);
  }
  EXPECT_TRUE(at::equal(value(s, "0.weight"), value(plain, "0.weight")));
}

TEST_F(NoisyStage, EvaluatesWithTheWeightsThemselves) {
  Stage s = noisy();
  s.install(kFirst, {});
  s.install(kFirst, {.training = false});
  EXPECT_TRUE(at::equal(read(s), value(s, "0.weight")));
}

TEST_F(NoisyStage, HasTheNarrowCopyOfWeightsWithNoise) {
  for (const at::ScalarType narrow : {at::kBFloat16, at::kHalf}) {
    Stage s = noisy(narrow);
    s.install(kFirst, {});
    const at::Tensor flat = s.weights().scratch();
    EXPECT_EQ(read(s).scalar_type(), narrow);
    EXPECT_TRUE(at::equal(read(s), s.layout().entries[0].view(flat).to(narrow)));
  }
}

}  // namespace
}  // namespace pipewright::test
