// SPDX-License-Identifier: Apache-2.0
// An optimizer: Lion (Chen et al., 2023).
//   W ← W − lr·(sign(β₁m + (1−β₁)g) + λW),   m ← β₂m + (1−β₂)g
// Its weights are predicted along the sign of the momentum: Ŵ = W − s·lr·sign(m).
#include <ATen/ATen.h>

#include "core/stage/optimizer.h"

namespace pipewright {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(Options& options)
      : Optimizer(options, 1e-4),
        now_(options.number("beta1", 0.9, "β₁: the momentum's part of a step.", kFraction)),
        kept_(options.number("beta2", 0.99, "β₂: what remains of the momentum.", kFraction)),
        decay_(options.number("weight_decay", 0, "Decoupled weight decay λ.", kNotNegative)) {}

  std::vector<std::string> slot_names(bool /*predicts*/) const override { return {"momentum"}; }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    for (std::size_t i = 0; i < s.layout.entries.size(); ++i) {
      const FlatLayout::Entry& entry = s.layout.entries[i];
      const at::Tensor before = entry.of(s.weights), after = entry.of(s.next);
      if (s.gradients[i].defined())
        step(before, after, entry.of(s.state.slots[0]), s.gradients[i], s);
      else if (!after.is_same(before))
        after.copy_(before);
      if (s.made) s.made(entry.offset, entry.offset + entry.size);
    }
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    const auto part = [&](const at::Tensor& flat) { return flat.slice(0, range.begin, range.end); };
    const at::Tensor ahead = part(p.ahead);
    ahead.copy_(part(p.weights));
    ahead.sub_(part(p.state.slots[0]).sign(), p.lr * p.steps);
    if (p.made) p.made(range.begin, range.end);
  }

 private:
  void step(const at::Tensor& before, const at::Tensor& after, at::Tensor momentum,
            const at::Tensor& scaled, const OptimizerStep& s) const {
    const at::Tensor gradient = scaled.to(momentum.scalar_type()) / s.loss_scale;
    const at::Tensor direction = (now_ * momentum + (1 - now_) * gradient).sign();
    after.copy_(before - s.lr * (direction + decay_ * before));
    momentum.mul_(kept_).add_(gradient, 1 - kept_);
  }

  double now_, kept_, decay_;
};

PIPEWRIGHT_OPTIMIZER(lion, Lion, "Lion: steps of one length, along the sign of the momentum.")

}  // namespace
}  // namespace pipewright
