// SPDX-License-Identifier: Apache-2.0
// A data set: points of the plane on spirals that turn around each other, one for each class.
#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "core/nn/dataset.h"

namespace pipewright {
namespace {

class Spirals final : public Dataset {
 public:
  explicit Spirals(Options& options)
      : arms_(options.integer("arms", 2, "Number of spirals, one for each class.", {2, 100})),
        samples_(options.integer("samples", 512, "Samples to train on, and as many to test with.",
                                 {2, 1e6})) {}

  void open(const DatasetRequest& /*request*/) override {}
  std::int64_t size(Split /*split*/) const override { return samples_; }
  std::vector<std::int64_t> sample_shape() const override { return {2}; }
  std::int64_t classes() const override { return arms_; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* /*augmentation*/) const override {
    const auto n = static_cast<std::int64_t>(indices.size());
    const at::Tensor points = at::empty({n, 2}, at::kFloat), arms = at::empty({n}, at::kLong);
    auto* const point = points.mutable_data_ptr<float>();
    auto* const arm = arms.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < n; ++i) {
      // Test samples lie half way between those for training.
      const double place = static_cast<double>(indices[static_cast<std::size_t>(i)]) +
                           (split == Split::Test ? 0.5 : 0);
      arm[i] = indices[static_cast<std::size_t>(i)] % arms_;
      const double radius = (place + 1) / (static_cast<double>(samples_) + 1);
      const double angle = 2 * std::numbers::pi *
                           (radius + static_cast<double>(arm[i]) / static_cast<double>(arms_));
      point[2 * i] = static_cast<float>(radius * std::cos(angle));
      point[2 * i + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return {{points}, arms};
  }

 private:
  std::int64_t arms_, samples_;
};

PIPEWRIGHT_DATASET(spirals, Spirals, "Points on spirals that turn around each other, made up.")

}  // namespace
}  // namespace pipewright
