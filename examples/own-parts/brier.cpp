// SPDX-License-Identifier: Apache-2.0
// A metric: the mean squared distance of the predicted probabilities from the truth, summed over
// classes (Brier, 1950). 0 is best.
#include <ATen/ATen.h>

#include "core/nn/metric.h"

namespace pipewright {
namespace {

class Brier final : public Metric {
 public:
  explicit Brier(Options& /*options*/) {}

  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const at::Tensor probabilities = at::softmax(output.to(at::kDouble), 1);
    const at::Tensor truth = at::one_hot(target, output.size(1));
    return at::stack({(probabilities - truth).square().sum(),
                      at::scalar_tensor(output.size(0), probabilities.options())});
  }
  double value(std::span<const double> sums) const override { return sums[0] / sums[1]; }
};

PIPEWRIGHT_METRIC(brier, Brier, "Mean squared distance of predicted probabilities from the truth.")

}  // namespace
}  // namespace pipewright
