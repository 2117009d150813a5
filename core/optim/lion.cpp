// SPDX-License-Identifier: Apache-2.0
// Lion (Chen et al., 2023, arXiv 2302.06675) as in its authors' code:
//   W ← (1 − lr·λ)W − lr·sign(β1 m + (1−β1)g);  m ← β2 m + (1−β2)g
// A prediction goes along the sign of the momentum: Ŵ = W − s·lr·sign(m). That is the step that a
// gradient like the mean of those so far would make; the next gradient is unknown.
#include "core/optim/betas.h"
#include "core/optim/elementwise.h"

namespace pipewright {
namespace {

using elementwise::factor;
using elementwise::sign_of;

class Lion final : public Optimizer {
 public:
  explicit Lion(Options& options)
      : Optimizer(options, 1e-4),
        betas_(read_betas(options, {0.9, 0.99},
                          "Decay factors of the momentum: in the sign that a step follows, and "
                          "from step to step.")),
        decay_(options, 0,
               "Decoupled weight decay λ: weights shrink by the factor 1 − lr·λ per step.") {}

  std::vector<std::string> slot_names(bool) const override { return {"exp_avg"}; }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    const double lr = s.lr, now = betas_[0], kept = betas_[1];
    elementwise::step<1>(s, decay_, [=](double lambda) {
      const double shrink = 1 - lr * lambda;
      return [=]<class V>(const V& w, V& g, std::array<V, 1>& m) -> V {
        const V direction = sign_of(V(factor<V>(now) * m[0] + factor<V>(1 - now) * g));
        m[0] = factor<V>(kept) * m[0] + factor<V>(1 - kept) * g;
        return w * factor<V>(shrink) - factor<V>(lr) * direction;
      };
    });
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    const double distance = p.distance();
    const double decay = p.rule.weight_decay && p.state.steps > 0 ? distance * decay_.most() : 0;
    elementwise::predict<1>(p, range, {&p.state.slots[0]},
                            [=]<class V>(const V& w, const std::array<V, 1>& m) -> V {
                              return w - factor<V>(decay) * w - factor<V>(distance) * sign_of(m[0]);
                            });
  }

 private:
  std::vector<double> betas_;
  WeightDecay decay_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(lion, Lion, "Lion; every weight moves by lr, along the sign of a momentum.")

}  // namespace pipewright
