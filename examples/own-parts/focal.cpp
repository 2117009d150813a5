// SPDX-License-Identifier: Apache-2.0
// A loss: (1 − p)^γ · (−log p) of the target's probability p, which attends less to samples that
// are already right (Lin et al., 2017). With γ = 0 it is cross-entropy.
#include <ATen/ATen.h>

#include "core/nn/loss.h"

namespace pipewright {
namespace {

class Focal final : public Loss {
 public:
  explicit Focal(Options& options)
      : gamma_(options.number("gamma", 2, "The exponent γ.", kNotNegative)) {}

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const override {
    const at::Tensor all = at::log_softmax(output, 1);
    const at::Tensor of_target = all.gather(1, target.unsqueeze(1));
    return -((1 - of_target.exp()).pow(gamma_) * of_target).mean();
  }

 private:
  double gamma_;
};

PIPEWRIGHT_LOSS(focal, Focal, "Focal loss: cross-entropy that attends less to easy samples.")

}  // namespace
}  // namespace pipewright
