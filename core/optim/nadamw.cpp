// SPDX-License-Identifier: Apache-2.0
// NAdam (Dozat, 2016) with AdamW's decay, as PyTorch's NAdam with decoupled_weight_decay:
//   μ_t = β1(1 − 0.96^(tψ)/2);  m ← β1 m + (1−β1)g;  u ← β2 u + (1−β2)g²;  D = √(u/(1−β2ᵗ)) + ε
//   W ← (1 − lr·λ)W − lr·(1−μ_t)/(1−μ_1⋯μ_t) · g/D − lr·μ_(t+1)/(1−μ_1⋯μ_(t+1)) · m/D
// AsyncPP (Ajanthan et al., 2025) trains with it under weight stashing, β1 = 0.99 or, with
// `momentum_by_delay`, nearer to 0.99 the later the gradients of a stage are.
// The next gradient is unknown, so a prediction goes along the mean of those so far, as Adam's:
//   Ŵ = W − s·lr · (m/(1−β1ᵗ)) / D
#include <cmath>

#include "core/optim/betas.h"
#include "core/optim/elementwise.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;
using elementwise::root;

class NAdamW final : public MomentumByDelay<NAdamW> {
 public:
  explicit NAdamW(Options& options)
      : MomentumByDelay(options, 2e-3),
        betas_(read_betas(options, {0.9, 0.999},
                          "Decay factors of the running means of the gradient and of its square.")),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the denominator.",
                            kNotNegative)),
        decay_(options, 0,
               "Decoupled weight decay λ: weights shrink by the factor 1 − lr·λ per step."),
        momentum_decay_(options.number("momentum_decay", 4e-3,
                                       "Number ψ: the momentum of step t is "
                                       "β1·(1 − 0.96^(t·ψ)/2), half of β1 at first.",
                                       kNotNegative)) {
    read_by_delay(options, "the first of betas", betas_[0]);
  }

  double& own_momentum() { return betas_[0]; }
  std::vector<std::string> slot_names(bool) const override { return {"exp_avg", "exp_avg_sq"}; }

  at::Tensor preconditioner(const OptimizerState& state) const override {
    if (state.steps == 0) return {};
    return (state.slots[1].sqrt() / root_of_correction(state.steps)).add_(eps_);
  }

  void step(const OptimizerStep& s) const override {
    const std::int64_t t = ++s.state.steps;
    const double product = product_of_momenta(t), mu = momentum(t), next = momentum(t + 1);
    const double of_gradient = s.lr * (1 - mu) / (1 - product),
                 of_mean = s.lr * next / (1 - product * next);
    const double root2 = root_of_correction(t);
    const double beta1 = betas_[0], beta2 = betas_[1], eps = eps_;
    elementwise::step<2>(s, decay_, [=, lr = s.lr](double lambda) {
      const double shrink = 1 - lr * lambda;
      return [=]<class V>(const V& w, V& g, std::array<V, 2>& x) -> V {
        x[0] = x[0] + factor<V>(1 - beta1) * (g - x[0]);
        x[1] = factor<V>(beta2) * x[1] + factor<V>(1 - beta2) * g * g;
        const V divisor = root(x[1]) / factor<V>(root2) + factor<V>(eps);
        return w * factor<V>(shrink) - factor<V>(of_gradient) * g / divisor -
               factor<V>(of_mean) * x[0] / divisor;
      };
    });
  }

  /// The rule of late steps, whose momentum is β1.
  std::optional<LinearRule> linear() const override {
    if (momentum_decay_ == 0) return {};  // it stays at β1/2, while m decays by β1
    return LinearRule{.momentum = betas_[0],
                      .dampening = betas_[0],
                      .of_velocity = betas_[0],
                      .of_gradient = 1 - betas_[0],
                      .decoupled = decay_.most(),
                      .preconditioned = true};
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    if (p.state.steps == 0)  // the bias corrections would divide by zero
      return elementwise::predict<0>(
          p, range, {}, []<class V>(const V& w, const std::array<V, 0>&) -> V { return w; });
    const double distance = p.distance(), eps = eps_;
    const double decay = p.rule.weight_decay ? distance * decay_.most() : 0;
    const double of_mean = distance / (1 - std::pow(betas_[0], static_cast<double>(p.state.steps)));
    const double root2 = root_of_correction(p.state.steps);
    elementwise::predict<2>(p, range, {&p.state.slots[0], &p.state.slots[1]},
                            [=]<class V>(const V& w, const std::array<V, 2>& x) -> V {
                              return w - factor<V>(decay) * w -
                                     factor<V>(of_mean) * x[0] /
                                         (root(x[1]) / factor<V>(root2) + factor<V>(eps));
                            });
  }

 private:
  /// μ of a step, counted from 1.
  double momentum(std::int64_t step) const {
    return betas_[0] * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * momentum_decay_));
  }

  /// μ_1⋯μ_t, or a product so small that 1 minus it is 1.
  double product_of_momenta(std::int64_t t) const {
    constexpr double kVanishes = 0x1p-60;
    double product = 1;
    for (std::int64_t step = 1; step <= t && product > kVanishes; ++step) product *= momentum(step);
    return product;
  }

  double root_of_correction(std::int64_t steps) const {
    return std::sqrt(1 - std::pow(betas_[1], static_cast<double>(steps)));
  }

  std::vector<double> betas_;
  double eps_;
  WeightDecay decay_;
  double momentum_decay_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(nadamw, NAdamW,
                     "NAdam with decoupled weight decay: AdamW with Nesterov's step.")

}  // namespace pipewright
