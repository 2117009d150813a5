// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "core/base/random.h"
#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

std::unique_ptr<Dataset> opened(const std::string& options) {
  auto dataset = make_dataset("quadratic", options);
  dataset->open({.model_input = {3}, .model_task = Task::Minimize});
  return dataset;
}

TEST(QuadraticDataset, IsZerosOfTheModelsShape) {
  const auto data = opened("{train: 7}");
  EXPECT_EQ(data->size(Split::Train), 7);
  EXPECT_EQ(data->size(Split::Test), 1);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{3}));
  const Batch batch = data->batch(Split::Train, first_indices(5), nullptr);
  EXPECT_TRUE(batch.x[0].equal(at::zeros({5, 3}, at::kDouble)));
  EXPECT_TRUE(batch.y.equal(at::full({5}, kNoTarget, at::kLong)));
}

TEST(QuadraticDataset, HasNormalTargetsOfTheGivenDeviation) {
  const auto data = opened("{train: 10000, noise: 0.5}");
  const at::Tensor x = data->batch(Split::Train, first_indices(10'000), nullptr).x[0];
  EXPECT_NEAR(x.mean().item<double>(), 0, tolerance::mean_of(30'000, 0.25));
  EXPECT_NEAR(x.std().item<double>(), 0.5, tolerance::deviation_of(30'000, 0.5));
  EXPECT_EQ(data->batch(Split::Test, first_indices(1), nullptr).x[0].abs().sum().item<double>(), 0)
      << "an evaluation shows f itself";
}

TEST(QuadraticDataset, GivesASampleTheSameTargetInEveryBatch) {
  const auto data = opened("{train: 10, noise: 1, seed: 4}");
  const at::Tensor all = data->batch(Split::Train, first_indices(10), nullptr).x[0];
  const std::vector<std::int64_t> indices{8, 3};
  const at::Tensor some = data->batch(Split::Train, indices, nullptr).x[0];
  EXPECT_TRUE(some[0].equal(all[8]));
  EXPECT_TRUE(some[1].equal(all[3]));
  EXPECT_EQ(all[3][1].item<double>(), -RandomStream(4, "quadratic.targets", 0).normal(3 * 3 + 1));
  EXPECT_FALSE(all.equal(opened("{train: 10, noise: 1, seed: 5}")
                             ->batch(Split::Train, first_indices(10), nullptr)
                             .x[0]));
}

}  // namespace
}  // namespace pipewright
