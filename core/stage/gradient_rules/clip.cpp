// SPDX-License-Identifier: Apache-2.0
// Gradient clipping by norm (Pascanu et al., 2013) as PyTorch's clip_grad_norm_:
//   g ← g · min(1, c / (‖g‖ + 10⁻⁶)),  with the norm over all parameters of the stage.
#include "core/stage/gradient_rule.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

class Clip final : public GradientRule {
 public:
  explicit Clip(Options& options)
      : norm_(options.number("norm", 1, "Largest norm c of a stage's gradient.", kNotNegative)) {
    options.choice("over", {"stage"}, "stage",
                   "Whose norm is compared with it. stage: that of each stage's own gradient, so "
                   "that another cut clips otherwise.");
  }

  void apply(const RuledGradient& of) const override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& gradient : of.gradients)
      if (gradient.defined()) norms.push_back(at::linalg_vector_norm(gradient, 2));
    if (norms.empty()) return;
    constexpr double kAboveZero = 1e-6;
    const at::Tensor factor =
        (at::linalg_vector_norm(at::stack(norms), 2) + kAboveZero).reciprocal().mul(norm_);
    const at::Tensor clamped = factor.clamp_max(1);
    for (at::Tensor& gradient : of.gradients)
      if (gradient.defined()) gradient = gradient * clamped;
  }

 private:
  double norm_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(clip, Clip, "Scales gradients down to a largest norm.")

}  // namespace pipewright
