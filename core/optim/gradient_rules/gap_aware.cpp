// SPDX-License-Identifier: Apache-2.0
// Gap-aware penalty (Barkai et al., 2020, arXiv 1909.10802): a gradient is divided, element by
// element, by how far its weights have moved meanwhile, in steps of average length.
//   g ← g / (1 + |W_now − W_read| / C),  C = lr_max·(√(s/(1−βᵗ)) + ε),  s ← βs + (1−β) v⊙v
// v is a whole step per learning rate, (W_before − W_after)/lr: of SGD the velocity, as the paper
// has it. Decoupled weight decay and the corrections of a rule before this one are part of v,
// because they are part of |W_now − W_read|, too. Only the gradient is divided, not the decoupled
// decay.
#include <cmath>

#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class GapAware final : public GradientRule {
 public:
  explicit GapAware(Options& options)
      : decay_(options.number("decay", 0.999,
                              "Decay factor β of the running mean s of squared steps per rate: "
                              "after t updates C = lr_max (√(s / (1 - βᵗ)) + ε).",
                              {0, 0.9999999})),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the length of a step.",
                            {1e-38, 1})) {}

  std::vector<std::string> slot_names() const override { return {"step_square"}; }
  bool compares_versions() const override { return true; }
  bool follows_steps() const override { return true; }

  void apply(const RuledGradient& ruled) const override {
    if (!ruled.is_stale() || ruled.updates == 0 || ruled.peak_lr == 0) return;
    const double correction = 1 - std::pow(decay_, static_cast<double>(ruled.updates));
    for (std::size_t p = 0; p < ruled.gradients.size(); ++p) {
      at::Tensor& gradient = ruled.gradients[p];
      if (!gradient.defined()) continue;
      const FlatLayout::Entry& entry = ruled.layout.entries[p];
      const at::Tensor step = (entry.view(ruled.slots[0]) / correction).sqrt_().add_(eps_);
      const at::Tensor gap = (entry.view(ruled.weights) - entry.view(ruled.read)).abs_();
      gradient = gradient / (gap / step.mul_(ruled.peak_lr) + 1);
    }
  }

  void stepped(const WeightStep& step) const override {
    at::Tensor mean = step.slots[0];
    mean.mul_(decay_);
    if (step.lr == 0) return;
    const at::Tensor velocity = (step.before - step.after).div_(step.lr);
    mean.addcmul_(velocity, velocity, 1 - decay_);
  }

 private:
  double decay_, eps_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(
    gap_aware, GapAware,
    "Gap-aware; divides a gradient by 1 + |W_now - W_read| / C, C an average step's length.")

}  // namespace pipewright
