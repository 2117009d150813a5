// First values of parameters: a function of seed and name.
#include "core/stage/initialize.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/stage/torch.h"

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
  EXPECT_NEAR(w.mean().item<double>(), 0,
              4 * 0.25 / std::sqrt(3 * 2000.0));  // four standard errors
}

TEST(Initialize, HasTheStandardDeviationAskedFor) {
  const at::Tensor w = initialized({Kind::Normal, 0.3}, 1, "w");
  EXPECT_NEAR(w.mean().item<double>(), 0, 4 * 0.3 / std::sqrt(2000.0));
  EXPECT_NEAR(w.std().item<double>(), 0.3, 4 * 0.3 / std::sqrt(4000.0));
}

}  // namespace
}  // namespace pipewright::test
