// SPDX-License-Identifier: Apache-2.0
// Metrics against counts by hand; sums of parts are sums of the whole.
#include "core/nn/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

double value(const std::string& name, const at::Tensor& output, const at::Tensor& target) {
  const auto metric = make_metric(name);
  const at::Tensor sums = metric->sums(output, target);
  EXPECT_EQ(sums.scalar_type(), at::kDouble);
  EXPECT_EQ(sums.numel(), static_cast<std::int64_t>(metric->size()));
  return metric->value({sums.const_data_ptr<double>(), metric->size()});
}

TEST(Accuracy, CountsLargestOutputsAtTheTarget) {
  const at::Tensor z =
      at::tensor({0.0, 0.1, 0.9, 0.5, 0.4, 0.1, 0.9, 0.0, 0.1, -2.0, -3.0, -1.0}).view({4, 3});
  EXPECT_EQ(value("accuracy", z, at::tensor({2, 0, 1, 2}, at::kLong)), 0.75);
}

TEST(Accuracy, LeavesOutTargetsThatDoNotCount) {
  const at::Tensor z = at::tensor({1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0}).view({2, 2, 2});
  EXPECT_EQ(value("accuracy", z, at::tensor({0, 1, 1, -100}, at::kLong).view({2, 2})), 2.0 / 3);
  EXPECT_TRUE(std::isnan(value("accuracy", z, at::full({2, 2}, -100, at::kLong))));
}

TEST(Accuracy, OfALogitForEachLabelIsTheShareWithTheRightSign) {
  const at::Tensor z = at::tensor({0.5, -2.0, 3.0, -0.1}), y = at::tensor({1, 1, 0, 0}, at::kByte);
  EXPECT_EQ(value("accuracy", z.view({2, 2}), y.view({2, 2})), 0.5);
  EXPECT_EQ(value("matthews", z.view({2, 2}), y.view({2, 2})), 0) << "tp = fp = fn = tn = 1";
  EXPECT_EQ(value("accuracy", z.view({4, 1}), y.to(at::kLong)), 0.5) << "one logit a sample";
  EXPECT_EQ(value("accuracy", at::ones({4, 1, 3, 3}), y.to(at::kLong)), 0.5) << "maps";
  EXPECT_FALSE(make_metric("top5")->fits(Task::Label));
  EXPECT_TRUE(make_metric("accuracy")->fits(Task::Label));
}

TEST(Mae, IsTheMeanDistanceFromRealTargets) {
  const at::Tensor output = at::tensor({1.0, 2.0, -1.0, 0.5}).view({2, 2}),
                   target = at::tensor({0.0, 2.0, 1.0, 0.0}).view({2, 2});
  EXPECT_EQ(value("mae", output, target), (1 + 2 + 0.5) / 4);
  EXPECT_TRUE(std::isnan(value("accuracy", output, target))) << "no class is right";
  EXPECT_TRUE(make_metric("mae")->fits(Task::Regress));
  EXPECT_FALSE(make_metric("mae")->fits(Task::Classify));
  EXPECT_FALSE(make_metric("top5")->fits(Task::Regress));
}

TEST(Metrics, AreUndefinedWithoutAnyTarget) {
  for (const char* name : {"accuracy", "top5", "perplexity"})
    EXPECT_TRUE(std::isnan(value(name, random({3, 1}, 1), at::full({3}, -100, at::kLong)))) << name;
}

TEST(Top5, CountsTargetsAmongTheFiveLargest) {
  const at::Tensor z = at::arange(16, at::kDouble).view({2, 8});  // largest: 7, 6, 5, 4, 3
  EXPECT_EQ(value("top5", z, at::tensor({3, 2}, at::kLong)), 0.5);
  EXPECT_EQ(value("top5", z.narrow(1, 0, 3), at::tensor({0, 2}, at::kLong)), 1);
}

TEST(Matthews, IsTheCorrelationOfTheCounts) {
  // said 1 1 1 0 0 0 1 0, is 1 1 0 0 0 1 1 0: tp 3, fp 1, fn 1, tn 3
  const at::Tensor said = at::tensor({1, 1, 1, 0, 0, 0, 1, 0}, at::kLong);
  const at::Tensor z = at::stack({1 - said, said}, 1).to(at::kDouble);
  EXPECT_NEAR(value("matthews", z, at::tensor({1, 1, 0, 0, 0, 1, 1, 0}, at::kLong)),
              (3.0 * 3 - 1 * 1) / 16, tolerance::kFewOperations);
  EXPECT_EQ(value("matthews", at::tensor({0.0, 1.0}).view({1, 2}), at::tensor({1}, at::kLong)), 0)
      << "one answer only";
}

TEST(Perplexity, IsTheGeometricMeanOfInverseProbabilities) {
  const at::Tensor p = at::tensor({0.5, 0.5, 0.25, 0.75}).to(at::kDouble).view({2, 2});
  EXPECT_NEAR(value("perplexity", p.log(), at::tensor({0, 0}, at::kLong)), std::sqrt(8),
              tolerance::kHundredOperations);
}

TEST(Metrics, CountEachPixelOfAMapOfLogits) {
  const at::Tensor z = at::tensor({1.0, -1.0, 2.0, 0.0, -3.0, -1.0, 0.5, -2.0}).view({2, 1, 2, 2});
  const at::Tensor y = at::tensor({1, 0}, at::kLong);
  EXPECT_EQ(value("accuracy", z, y), (2 + 3) / 8.0) << "logit 0 is background";
  EXPECT_EQ(value("top5", z, y), 1);
  const double tp = 2, fp = 1, fn = 2, tn = 3;
  EXPECT_NEAR(value("matthews", z, y), (tp * tn - fp * fn) / std::sqrt(3.0 * 4 * 4 * 5),
              tolerance::kFewOperations);
  double log_likelihood = 0;  // of σ(z) where the target is 1, of σ(−z) where it is 0
  for (const double right : {1.0, -1.0, 2.0, 0.0, 3.0, 1.0, -0.5, 2.0})
    log_likelihood -= std::log1p(std::exp(-right));
  EXPECT_NEAR(value("perplexity", z, y), std::exp(-log_likelihood / 8),
              tolerance::kHundredOperations);
}

TEST(Metrics, OfPartsAddUpToThoseOfTheWhole) {
  const at::Tensor z = random({10, 6}, 3);
  const at::Tensor classes = at::tensor({0, 1, 2, 3, 4, 5, 0, 1, 2, 3}, at::kLong);
  for (const std::string& name : Registry<Metric>::instance().names()) {
    const auto metric = make_metric(name);
    const at::Tensor y = metric->fits(Task::Regress) ? random({10, 6}, 4) : classes;
    const at::Tensor parts = metric->sums(z.narrow(0, 0, 4), y.narrow(0, 0, 4)) +
                             metric->sums(z.narrow(0, 4, 6), y.narrow(0, 4, 6));
    EXPECT_TRUE(at::allclose(parts, metric->sums(z, y), tolerance::kHundredOperations, 0)) << name;
  }
}

}  // namespace
}  // namespace pipewright::test
