// SPDX-License-Identifier: Apache-2.0
// Batch norm's two kinds of statistics, against formulas.
#include <vector>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

TEST(BatchNorm, DeclaresUnitScaleAndFreshStatistics) {
  const LayerPtr layer = batch_norm(3);
  const auto parameters = layer->parameters();
  EXPECT_EQ(parameters[0].init.a, 1);
  EXPECT_EQ(parameters[1].init.a, 0);
  const auto buffers = layer->buffers();
  EXPECT_EQ(buffers[0].name, "running_mean");
  EXPECT_EQ(buffers[0].fill, 0);
  EXPECT_EQ(buffers[1].name, "running_var");
  EXPECT_EQ(buffers[1].fill, 1);
}

TEST(BatchNorm, MovesRunningStatisticsWithTheUnbiasedVariance) {
  const LayerPtr layer = batch_norm(3, 1e-5, 0.1);
  const auto parameters = random_parameters(*layer, 1);
  auto buffers = fresh_buffers(*layer);
  at::Tensor mean = buffers[0].clone(), variance = buffers[1].clone();
  for (const std::uint64_t step : {1, 2, 3}) {
    const at::Tensor x = 2 * random({4, 3, 5, 5}, step) + 1;
    layer->forward(x, parameters, buffers, {});
    const BatchNormReference batch(x);
    mean = 0.9 * mean + 0.1 * batch.mean;
    variance = 0.9 * variance + 0.1 * batch.variance * batch.count / (batch.count - 1);
    EXPECT_LT(relative_error(buffers[0], mean), kFloat64Relative) << "step " << step;
    EXPECT_LT(relative_error(buffers[1], variance), kFloat64Relative) << "step " << step;
  }
}

TEST(BatchNorm, EvaluatesWithRunningStatisticsAndLeavesThemAlone) {
  const LayerPtr layer = batch_norm(3, 1e-3);
  const auto parameters = random_parameters(*layer, 1);
  std::vector<at::Tensor> buffers{random({3}, 2), random({3}, 3).square()};
  const std::vector<at::Tensor> before{buffers[0].clone(), buffers[1].clone()};
  const at::Tensor x = random({1, 3, 1, 1}, 4);  // one value per channel will do
  const auto channel = [](const at::Tensor& t) { return t.view({1, 3, 1, 1}); };
  const at::Tensor expected =
      channel(parameters[0]) * (x - channel(before[0])) / (channel(before[1]) + 1e-3).sqrt() +
      channel(parameters[1]);
  const at::Tensor y = layer->forward(x, parameters, buffers, {.training = false});
  EXPECT_LT(relative_error(y, expected), kFloat64Relative);
  EXPECT_TRUE(at::equal(buffers[0], before[0]));
  EXPECT_TRUE(at::equal(buffers[1], before[1]));
}

TEST(BatchNorm, UsesItsOwnMicroBatchOnly) {
  const LayerPtr layer = batch_norm(2);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({6, 2, 3, 3}, 2);
  const at::Tensor first = apply(*layer, x.narrow(0, 0, 3), parameters);
  const at::Tensor expected =
      BatchNormReference(x.narrow(0, 0, 3)).forward(parameters[0], parameters[1]);
  EXPECT_LT(relative_error(first, expected), kFloat64Relative);
}

TEST(BatchNorm, RefusesToTrainOnOneValuePerChannel) {
  const LayerPtr layer = batch_norm(2);
  layer->set_name("conv5_3.bn");
  const auto parameters = random_parameters(*layer, 1);
  try {
    apply(*layer, random({1, 2, 1, 1}, 2), parameters);
    FAIL() << "the variance of one value does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::Experiment));
    EXPECT_NE(error.message().find("'conv5_3.bn'"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace pipewright::test
