// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019) as in PyTorch:
//   m ← β1 m + (1−β1)g;  u ← β2 u + (1−β2)g²;  W ← W − lr·(m/(1−β1ᵗ)) / (√u/√(1−β2ᵗ) + ε)
// Adam adds λW to g; AdamW first scales W by 1 − lr·λ. A prediction takes the same step with the
// current moments and step count or, if geometric, the steps that gradients of 0 would make; it
// includes AdamW's decay only if the rule asks for it.
#include <cmath>

#include "core/optim/betas.h"
#include "core/optim/elementwise.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;
using elementwise::root;

class AdamFamily : public MomentumByDelay<AdamFamily> {
 public:
  AdamFamily(Options& options, bool decoupled, double default_weight_decay)
      : MomentumByDelay(options, 1e-3),
        decoupled_(decoupled),
        betas_(read_betas(options, {0.9, 0.999},
                          "Decay factors of the running means of the gradient and of its square.")),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the denominator.",
                            kNotNegative)),
        decay_(options, default_weight_decay,
               decoupled
                   ? "Decoupled weight decay λ: weights shrink by the factor 1 − lr·λ per step."
                   : "Weight decay λ, an L2 penalty added to the gradient.") {
    read_by_delay(options, "the first of betas", betas_[0]);
  }

  double& own_momentum() { return betas_[0]; }
  std::vector<std::string> slot_names(bool) const override { return {"exp_avg", "exp_avg_sq"}; }

  at::Tensor preconditioner(const OptimizerState& state) const override {
    if (state.steps == 0) return {};
    const Correction correction(*this, state.steps, 1);
    return (state.slots[1].sqrt() / correction.root2).add_(eps_);
  }

  void step(const OptimizerStep& s) const override {
    const Correction correction(*this, ++s.state.steps, s.lr);
    const double beta1 = betas_[0], beta2 = betas_[1], eps = eps_;
    elementwise::step<2>(s, decay_, [=, lr = s.lr, decoupled = decoupled_](double lambda) {
      const double shrink = decoupled ? 1 - lr * lambda : 1, l2 = decoupled ? 0 : lambda;
      return [=]<class V>(const V& w, V& g, std::array<V, 2>& x) -> V {
        if (l2 != 0) g = g + factor<V>(l2) * w;
        x[0] = x[0] + factor<V>(1 - beta1) * (g - x[0]);
        x[1] = factor<V>(beta2) * x[1] + factor<V>(1 - beta2) * g * g;
        const V kept = w * factor<V>(shrink);
        return kept - factor<V>(correction.step_size) * x[0] /
                          (root(x[1]) / factor<V>(correction.root2) + factor<V>(eps));
      };
    });
  }

  /// Adam's L2 penalty is left out: divided by the preconditioner it is curvature that the
  /// preconditioned Hessian may include.
  std::optional<LinearRule> linear() const override {
    return LinearRule{.momentum = betas_[0],
                      .dampening = betas_[0],
                      .decoupled = decoupled_ ? decay_.most() : 0,
                      .preconditioned = true,
                      .knows_geometric = true};
  }

  bool predicts_by(PredictionRule::Kind kind) const override {
    return kind != PredictionRule::Kind::Lookahead;
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    if (p.state.steps == 0)  // the bias corrections would divide by zero
      return elementwise::predict<0>(
          p, range, {}, []<class V>(const V& w, const std::array<V, 0>&) -> V { return w; });
    if (p.rule.kind == PredictionRule::Kind::Geometric) return predict_decaying(p, range);
    const Correction correction(*this, p.state.steps, p.distance());
    const double decay = p.rule.weight_decay && decoupled_ ? p.distance() * decay_.most() : 0;
    const double eps = eps_;
    elementwise::predict<2>(
        p, range, {&p.state.slots[0], &p.state.slots[1]},
        [=]<class V>(const V& w, const std::array<V, 2>& x) -> V {
          return w - factor<V>(decay) * w -
                 factor<V>(correction.step_size) * x[0] /
                     (root(x[1]) / factor<V>(correction.root2) + factor<V>(eps));
        });
  }

 private:
  struct Correction {
    Correction(const AdamFamily& adam, std::int64_t steps, double lr)
        : step_size(lr / (1 - std::pow(adam.betas_[0], static_cast<double>(steps)))),
          root2(std::sqrt(1 - std::pow(adam.betas_[1], static_cast<double>(steps)))) {}
    double step_size;
    double root2;
  };

  /// Steps whose gradient is 0, one after another, as FTPipe (Eliad et al., 2021) predicts:
  ///   Ŵ ← (1 − lr_j·λ)Ŵ − lr_j·β1^j m/(1−β1^(t+j)) / (√u/√(1−β2^(t+j)) + ε),  j = 1 … s
  void predict_decaying(const Prediction& p, const FlatRange& range) const {
    if (p.steps <= 0)
      return elementwise::predict<0>(
          p, range, {}, []<class V>(const V& w, const std::array<V, 0>&) -> V { return w; });
    for (int j = 1; j <= p.steps; ++j) {
      const double lr = p.rate_of(j - 1), eps = eps_;
      const Correction correction(*this, p.state.steps + j, lr * std::pow(betas_[0], j));
      const double kept = p.rule.weight_decay && decoupled_ ? 1 - lr * decay_.most() : 1;
      const Prediction from_before{.weights = j == 1 ? p.weights : p.ahead,
                                   .ahead = p.ahead,
                                   .state = p.state,
                                   .rule = p.rule};
      elementwise::predict<2>(
          from_before, range, {&p.state.slots[0], &p.state.slots[1]},
          [=]<class V>(const V& w, const std::array<V, 2>& x) -> V {
            return w * factor<V>(kept) -
                   factor<V>(correction.step_size) * x[0] /
                       (root(x[1]) / factor<V>(correction.root2) + factor<V>(eps));
          });
    }
  }

  bool decoupled_;
  std::vector<double> betas_;
  double eps_;
  WeightDecay decay_;
};

class Adam final : public AdamFamily {
 public:
  explicit Adam(Options& options) : AdamFamily(options, false, 0) {}
};

class AdamW final : public AdamFamily {
 public:
  explicit AdamW(Options& options) : AdamFamily(options, true, 0.01) {}
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(adam, Adam, "Adam; weight decay is an L2 penalty in the gradient.")
PIPEWRIGHT_OPTIMIZER(adamw, AdamW, "AdamW; decoupled weight decay, 0.01 by default.")

}  // namespace pipewright
