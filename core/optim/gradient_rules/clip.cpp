// SPDX-License-Identifier: Apache-2.0
// Gradient clipping by norm (Pascanu et al., 2013) as PyTorch's clip_grad_norm_:
//   g ← g · min(1, c / (‖g‖ + 10⁻⁶)),  with the norm over all parameters of the stage or of the
//   model.
#include <cmath>

#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Clip final : public GradientRule {
 public:
  explicit Clip(Options& options)
      : norm_(options.number("norm", 1, "Largest norm c of a gradient.", kNotNegative)),
        over_model_(
            options.choice("over", {"stage", "model"}, "stage",
                           "Whose norm is compared with it. stage: that of each stage's own "
                           "gradient, so that another cut clips otherwise; model: that of "
                           "the whole model, whatever the cut. The model's is known only "
                           "where all stages are updated between two mini-batches, so "
                           "schemes that go on meanwhile are refused.") == "model") {}

  bool over_model() const override { return over_model_; }

  void apply(const RuledGradient& ruled) const override {
    if (over_model_) {
      const double factor = norm_ / (std::sqrt(ruled.model_square) + kAboveZero);
      if (factor >= 1) return;  // not so if the norm is NaN, which gradients then show
      return scale(ruled, factor);
    }
    std::vector<at::Tensor> norms;
    for (const at::Tensor& gradient : ruled.gradients)
      if (gradient.defined()) norms.push_back(at::linalg_vector_norm(gradient, 2));
    if (norms.empty()) return;
    const at::Tensor total = at::linalg_vector_norm(at::stack(norms), 2);
    scale(ruled, (total + kAboveZero).reciprocal().mul(norm_).clamp_max(1));
  }

 private:
  static constexpr double kAboveZero = 1e-6;

  template <class Factor>
  static void scale(const RuledGradient& ruled, const Factor& factor) {
    for (at::Tensor& gradient : ruled.gradients)
      if (gradient.defined()) gradient = gradient * factor;
  }

  double norm_;
  bool over_model_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(clip, Clip, "Scales gradients down to a largest norm.")

}  // namespace pipewright
