// SPDX-License-Identifier: Apache-2.0
// DC-ASGD (Zheng et al., 2017, arXiv 1609.08326): a first-order correction of a gradient that was
// computed with older weights. g⊙g stands for the diagonal of the Hessian.
//   g ← g + λ g⊙g⊙(W_now − W_read)
// Adaptive: λ / √(s + ε) in place of λ, with s ← m·s + (1−m) g⊙g.
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class DelayCompensation final : public GradientRule {
 public:
  explicit DelayCompensation(Options& options)
      : lambda_(options.number("lambda", 0.04, "Strength λ of the correction; 0 = none.",
                               kNotNegative)),
        adaptive_(options.flag("adaptive", false,
                               "Whether λ is divided by the root of a running mean of squared "
                               "gradients, element by element.")),
        decay_(options.number("decay", 0.95, "Decay factor m of that running mean, if adaptive.",
                              kFraction)),
        eps_(options.number("eps", 1e-7, "Number ε that is added to it.", kNotNegative)) {}

  std::vector<std::string> slot_names() const override {
    if (adaptive_) return {"gradient_square"};
    return {};
  }
  bool compares_versions() const override { return true; }

  void apply(const RuledGradient& ruled) const override {
    const bool corrects = ruled.is_stale() && lambda_ != 0;
    if (!corrects && !adaptive_) return;
    for (std::size_t p = 0; p < ruled.gradients.size(); ++p) {
      at::Tensor& gradient = ruled.gradients[p];
      if (!gradient.defined()) continue;
      const FlatLayout::Entry& entry = ruled.layout.entries[p];
      at::Tensor square = gradient * gradient;
      if (adaptive_) entry.view(ruled.slots[0]).mul_(decay_).add_(square, 1 - decay_);
      if (!corrects) continue;
      if (adaptive_) square = square / (entry.view(ruled.slots[0]) + eps_).sqrt_();
      gradient = gradient + square * (entry.view(ruled.weights) - entry.view(ruled.read)) * lambda_;
    }
  }

 private:
  double lambda_;
  bool adaptive_;
  double decay_, eps_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(dc_asgd, DelayCompensation,
                         "DC-ASGD; corrects a gradient for the updates that it has missed.")

}  // namespace pipewright
