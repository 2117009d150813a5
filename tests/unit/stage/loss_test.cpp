// Losses: means over samples.
#include "core/stage/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/stage/torch.h"
#include "tests/unit/stage/layers_fixture.h"

namespace pipewright::test {
namespace {

std::unique_ptr<Loss> cross_entropy(const std::string& text = "{}") {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "loss", problems);
  auto loss = Registry<Loss>::instance().find("cross_entropy")->make(options);
  EXPECT_TRUE(problems.empty());
  return loss;
}

const at::Tensor kTargets = at::tensor({2, 0, 1, 2}, at::kLong);

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

TEST(CountCorrect, CountsLargestOutputsAtTheTarget) {
  const at::Tensor z =
      at::tensor({0.0, 0.1, 0.9, 0.5, 0.4, 0.1, 0.9, 0.0, 0.1, -2.0, -3.0, -1.0}).view({4, 3});
  EXPECT_EQ(count_correct(z, kTargets).item<std::int64_t>(), 3);
}

}  // namespace
}  // namespace pipewright::test
