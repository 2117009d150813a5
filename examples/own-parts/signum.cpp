// SPDX-License-Identifier: Apache-2.0
// An optimizer: Signum (Bernstein et al., 2018).
//   m ← βm + (1−β)g,   W ← W − lr·(sign(m) + λW)
// Its weights are predicted along the sign of the momentum: Ŵ = W − s·lr·sign(m).
#include <ATen/ATen.h>

#include "core/optim/optimizer.h"

namespace pipewright {
namespace {

class Signum final : public Optimizer {
 public:
  explicit Signum(Options& options)
      : Optimizer(options, 1e-4),
        kept_(options.number("beta", 0.9, "β: what remains of the momentum.", kFraction)),
        decay_(options.number("weight_decay", 0, "Decoupled weight decay λ.", kNotNegative)) {}

  std::vector<std::string> slot_names(bool /*predicts*/) const override { return {"momentum"}; }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    for (std::size_t i = 0; i < s.layout.entries.size(); ++i) {
      const FlatLayout::Entry& entry = s.layout.entries[i];
      const at::Tensor before = entry.view(s.weights), after = entry.view(s.next);
      if (s.gradients[i].defined())
        step(before, after, entry.view(s.state.slots[0]), s.gradients[i], s);
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
    momentum.mul_(kept_).add_(gradient, 1 - kept_);
    after.copy_(before - s.lr * (momentum.sign() + decay_ * before));
  }

  double kept_, decay_;
};

PIPEWRIGHT_OPTIMIZER(signum, Signum, "Signum: steps of one length, along the sign of the momentum.")

}  // namespace
}  // namespace pipewright
