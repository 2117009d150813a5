// SPDX-License-Identifier: Apache-2.0
// First values of parameters: a function of seed and name.
#include "core/nn/initialize.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/tensors/torch.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Kind = Initializer::Kind;

at::Tensor initialized(Initializer how, std::uint64_t seed, const std::string& name,
                       at::IntArrayRef shape = {40, 50}, at::ScalarType type = at::kDouble) {
  const at::Tensor parameter = at::full(shape, 9, type);
  initialize(parameter, how, seed, name);
  return parameter;
}

TEST(Initialize, IsAFunctionOfSeedAndName) {
  const Initializer normal{Kind::Normal, 1};
  const at::Tensor a = initialized(normal, 1, "0.weight");
  EXPECT_TRUE(at::equal(a, initialized(normal, 1, "0.weight")));
  EXPECT_FALSE(at::equal(a, initialized(normal, 2, "0.weight")));
  EXPECT_FALSE(at::equal(a, initialized(normal, 1, "1.weight")));
}

TEST(Initialize, DrawsElementsInRowMajorOrder) {
  const at::Tensor wide = initialized({Kind::Uniform, 1}, 1, "w", {4, 6});
  EXPECT_TRUE(at::equal(wide.flatten(), initialized({Kind::Uniform, 1}, 1, "w", {24})));
  const RandomStream stream(1, "init", stable_hash("w"));
  EXPECT_EQ(wide[1][2].item<double>(), 2 * stream.uniform(8) - 1);
}

TEST(Initialize, RoundsTheSameDrawsToFloat32) {
  const Initializer normal{Kind::Normal, 0.1};
  EXPECT_TRUE(at::equal(initialized(normal, 1, "w", {40, 50}, at::kFloat),
                        initialized(normal, 1, "w").to(at::kFloat)));
}

TEST(Initialize, FillsAConstant) {
  EXPECT_TRUE(
      at::equal(initialized({Kind::Constant, 0.5}, 1, "w"), at::full({40, 50}, 0.5, at::kDouble)));
}

TEST(Initialize, StaysWithinUniformBoundsAndFillsThem) {
  const at::Tensor w = initialized({Kind::Uniform, 0.25}, 1, "w");
  EXPECT_LE(w.abs().max().item<double>(), 0.25);
  EXPECT_GT(w.max().item<double>(), 0.24);
  EXPECT_LT(w.min().item<double>(), -0.24);
  EXPECT_NEAR(w.mean().item<double>(), 0, tolerance::mean_of(2000, 0.25 * 0.25 / 3));
}

TEST(Initialize, HasTheStandardDeviationAskedFor) {
  const at::Tensor w = initialized({Kind::Normal, 0.3}, 1, "w");
  EXPECT_NEAR(w.mean().item<double>(), 0, tolerance::mean_of(2000, 0.3 * 0.3));
  EXPECT_NEAR(w.std().item<double>(), 0.3, tolerance::deviation_of(2000, 0.3));
}

double normal_probability(double below) {
  return std::erfc(-below / std::sqrt(2.0)) / 2;
}

TEST(Initialize, TruncatesTheNormalByTheInverseOfItsDistribution) {
  const at::Tensor w = initialized({Kind::TruncatedNormal, 0.1}, 1, "w", {500});
  const RandomStream stream(1, "init", stable_hash("w"));
  const double least = normal_probability(-2), most = normal_probability(2);
  for (std::int64_t i = 0; i < 500; ++i) {
    const double share = (normal_probability(w[i].item<double>() / 0.1) - least) / (most - least);
    EXPECT_NEAR(share, stream.uniform(static_cast<std::uint64_t>(i)), tolerance::kHundredOperations)
        << "element " << i;
  }
}

TEST(Initialize, StaysWithinTwoStandardDeviationsWhereTruncated) {
  const at::Tensor w = initialized({Kind::TruncatedNormal, 0.1}, 1, "w", {20000});
  EXPECT_LE(w.abs().max().item<double>(), 0.2);
  EXPECT_GT(w.max().item<double>(), 0.199);
  EXPECT_LT(w.min().item<double>(), -0.199);
}

TEST(Initialize, HasTheMomentsAndQuartilesOfATruncatedNormal) {
  constexpr double kStd = 0.87962566103423976;       // √(1 − 4φ(2)/(2Φ(2) − 1))
  constexpr double kLowerQuartile = -0.63911191087;  // Φ⁻¹(Φ(−2) + (2Φ(2) − 1)/4)
  const double n = 20000;
  const at::Tensor w = initialized({Kind::TruncatedNormal, 1}, 1, "w", {20000});
  EXPECT_NEAR(w.mean().item<double>(), 0, tolerance::mean_of(n, kStd * kStd));
  EXPECT_NEAR(w.std().item<double>(), kStd, tolerance::deviation_of(n, kStd));
  const auto share = [&](const at::Tensor& yes) {
    return yes.to(at::kDouble).mean().item<double>();
  };
  EXPECT_NEAR(share(w < kLowerQuartile), 0.25, tolerance::share_of(n, 0.25));
  EXPECT_NEAR(share(w > -kLowerQuartile), 0.25, tolerance::share_of(n, 0.25));
}

}  // namespace
}  // namespace pipewright::test
