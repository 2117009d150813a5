// SPDX-License-Identifier: Apache-2.0
// Adan (Xie et al., 2022, arXiv 2208.06677) as in its authors' code, with d the difference from the
// gradient before (0 at first):
//   m ← β1 m + (1−β1)g;  v ← β2 v + (1−β2)d;  n ← β3 n + (1−β3)(g + β2 d)²
//   Δ = (m/(1−β1ᵗ) + β2 v/(1−β2ᵗ)) / (√n/√(1−β3ᵗ) + ε);  W ← (W − lr·Δ) / (1 + lr·λ)
// or, without the proximal decay, W ← (1 − lr·λ)W − lr·Δ. A prediction takes the same step again:
//   Ŵ = W − s·lr·Δ
#include <cmath>

#include "core/optim/betas.h"
#include "core/optim/elementwise.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;
using elementwise::root;

class Adan final : public MomentumByDelay<Adan> {
 public:
  explicit Adan(Options& options)
      : MomentumByDelay(options, 1e-3),
        betas_(read_betas(options, {0.98, 0.92, 0.99},
                          "Decay factors of the running means of the gradient, of its difference "
                          "from the one before, and of the square of the gradient extrapolated by "
                          "that difference.")),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the denominator.",
                            kNotNegative)),
        decay_(options, 0, "Decoupled weight decay λ."),
        proximal_(options.flag("proximal", true,
                               "Whether weights are divided by 1 + lr·λ after a step, as the paper "
                               "has it, instead of multiplied by 1 − lr·λ before it.")) {
    read_by_delay(options, "the first of betas", betas_[0]);
  }

  double& own_momentum() { return betas_[0]; }
  std::vector<std::string> slot_names(bool) const override {
    return {"exp_avg", "exp_avg_diff", "exp_avg_sq", "previous_gradient"};
  }
  int slots_predicted_from() const override { return 3; }

  at::Tensor preconditioner(const OptimizerState& state) const override {
    if (state.steps == 0) return {};
    return (state.slots[2].sqrt() / Correction(*this, state.steps, 1).root3).add_(eps_);
  }

  void step(const OptimizerStep& s) const override {
    const bool first = ++s.state.steps == 1;
    const Correction correction(*this, s.state.steps, s.lr);
    const double beta1 = betas_[0], beta2 = betas_[1], beta3 = betas_[2], eps = eps_;
    elementwise::step<4>(s, decay_, [=, lr = s.lr, proximal = proximal_](double lambda) {
      const double before = proximal ? 1 : 1 - lr * lambda, after = proximal ? 1 + lr * lambda : 1;
      return [=]<class V>(const V& w, V& g, std::array<V, 4>& x) -> V {
        const V difference = g - (first ? g : x[3]);
        const V extrapolated = g + factor<V>(beta2) * difference;
        x[0] = factor<V>(beta1) * x[0] + factor<V>(1 - beta1) * g;
        x[1] = factor<V>(beta2) * x[1] + factor<V>(1 - beta2) * difference;
        x[2] = factor<V>(beta3) * x[2] + factor<V>(1 - beta3) * extrapolated * extrapolated;
        x[3] = g;
        const V divisor = root(x[2]) / factor<V>(correction.root3) + factor<V>(eps);
        return (w * factor<V>(before) - factor<V>(correction.of_mean) * x[0] / divisor -
                factor<V>(correction.of_difference) * x[1] / divisor) /
               factor<V>(after);
      };
    });
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    if (p.state.steps == 0)  // the bias corrections would divide by zero
      return elementwise::predict<0>(
          p, range, {}, []<class V>(const V& w, const std::array<V, 0>&) -> V { return w; });
    const Correction correction(*this, p.state.steps, p.distance());
    const double decay = p.rule.weight_decay ? p.distance() * decay_.most() : 0;
    const double eps = eps_;
    elementwise::predict<3>(
        p, range, {&p.state.slots[0], &p.state.slots[1], &p.state.slots[2]},
        [=]<class V>(const V& w, const std::array<V, 3>& x) -> V {
          return w - factor<V>(decay) * w -
                 (factor<V>(correction.of_mean) * x[0] +
                  factor<V>(correction.of_difference) * x[1]) /
                     (root(x[2]) / factor<V>(correction.root3) + factor<V>(eps));
        });
  }

 private:
  struct Correction {
    Correction(const Adan& adan, std::int64_t steps, double lr)
        : of_mean(lr / adan.bias_correction(0, steps)),
          of_difference(lr * adan.betas_[1] / adan.bias_correction(1, steps)),
          root3(std::sqrt(adan.bias_correction(2, steps))) {}
    double of_mean, of_difference, root3;
  };

  double bias_correction(std::size_t of, std::int64_t steps) const {
    return 1 - std::pow(betas_[of], static_cast<double>(steps));
  }

  std::vector<double> betas_;
  double eps_;
  WeightDecay decay_;
  bool proximal_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(adan, Adan,
                     "Adan; Nesterov's momentum from differences of gradients, decoupled decay.")

}  // namespace pipewright
