// SPDX-License-Identifier: Apache-2.0
/// Samples for the model `quadratic`: x = −t for a target t, so that the model's last layer has
/// s = Σ A_k·w_k − t and minimises ½|s|². Targets are 0, or normal(0, noise): the gradient of a
/// mini-batch of B samples then has noise of deviation noise/√B in s.
///
/// Value i of sample j is element j·n + i of the stream (seed, "quadratic.targets", split). There
/// are no classes; y is kNoTarget.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "core/base/error.h"
#include "core/nn/dataset.h"

namespace pipewright {
namespace {

class QuadraticTargets final : public Dataset {
 public:
  explicit QuadraticTargets(Options& options)
      : counts_{options.integer("train", 512, "Number of training samples.", {1, 1e9}),
                options.integer("test", 1, "Number of test samples.", {1, 1e9})},
        noise_(options.number("noise", 0,
                              "Standard deviation of the training targets, which are 0 without it. "
                              "Test targets are 0.",
                              kNotNegative)),
        seed_(static_cast<std::uint64_t>(options.integer(
            "seed", 0, "Seed of the targets, which train.seed does not change.", kNotNegative))) {}

  void open(const DatasetRequest& request) override { shape_ = request.model_input; }

  std::int64_t size(Split split) const override { return counts_[static_cast<std::size_t>(split)]; }
  std::vector<std::int64_t> sample_shape() const override { return shape_; }
  std::int64_t classes() const override { return 1; }
  Task task() const override { return Task::Minimize; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const auto count = static_cast<std::int64_t>(indices.size());
    std::vector<std::int64_t> shape = shape_;
    shape.insert(shape.begin(), count);
    Batch batch{{at::zeros(shape, at::kDouble)}, at::full({count}, kNoTarget, at::kLong)};
    if (noise_ == 0 || split == Split::Test) return batch;
    const RandomStream targets(seed_, "quadratic.targets", static_cast<std::uint64_t>(split));
    const auto values = static_cast<std::uint64_t>(batch.x[0].numel() / count);
    auto* x = batch.x[0].mutable_data_ptr<double>();
    for (const std::int64_t index : indices) {
      PIPEWRIGHT_CHECK(index >= 0 && index < size(split), "sample ", index);
      const std::uint64_t first = static_cast<std::uint64_t>(index) * values;
      for (std::uint64_t i = 0; i < values; ++i) *x++ = -noise_ * targets.normal(first + i);
    }
    return batch;
  }

 private:
  std::array<std::int64_t, 2> counts_;  // per split
  double noise_;
  std::uint64_t seed_;
  std::vector<std::int64_t> shape_;
};

}  // namespace

PIPEWRIGHT_DATASET(quadratic, QuadraticTargets,
                   "Targets for the model quadratic: zeros, or noise around zero.")

}  // namespace pipewright
