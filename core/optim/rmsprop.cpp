// SPDX-License-Identifier: Apache-2.0
// RMSprop (Hinton) as in PyTorch: u ← αu + (1−α)g²;  b ← μb + g/(√u + ε);  W ← W − lr·b.
// Prediction: Ŵ = W − s·lr·b; with μ = 0 b is the last step's direction.
#include "core/optim/elementwise.h"
#include "core/optim/momentum.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;
using elementwise::root;

class RmsProp final : public MomentumByDelay<RmsProp> {
 public:
  explicit RmsProp(Options& options)
      : MomentumByDelay(options, 1e-2),
        alpha_(options.number(
            "alpha", 0.99, "Decay factor of the running mean of the squared gradient.", kFraction)),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the denominator.",
                            kNotNegative)),
        momentum_(read_momentum(options)),
        decay_(options, 0, "Weight decay λ, an L2 penalty added to the gradient.") {
    read_by_delay(options, "momentum", momentum_);
  }

  double& own_momentum() { return momentum_; }
  std::vector<std::string> slot_names(bool predicts) const override {
    if (momentum_ != 0 || predicts) return {"square_avg", "momentum_buffer"};
    return {"square_avg"};
  }

  at::Tensor preconditioner(const OptimizerState& state) const override {
    if (state.steps == 0) return {};
    return state.slots[0].sqrt().add_(eps_);
  }
  int slots_predicted_from() const override { return 1; }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    const double lr = s.lr, alpha = alpha_, eps = eps_, mu = momentum_;
    const auto direction = [=]<class V>(double lambda, const V& w, V g, V& square) -> V {
      if (lambda != 0) g = g + factor<V>(lambda) * w;
      square = factor<V>(alpha) * square + factor<V>(1 - alpha) * g * g;
      return g / (root(square) + factor<V>(eps));
    };
    if (s.state.slots.size() == 1)
      elementwise::step<1>(s, decay_, [=](double lambda) {
        return [=]<class V>(const V& w, V& g, std::array<V, 1>& x) -> V {
          return w - factor<V>(lr) * direction(lambda, w, g, x[0]);
        };
      });
    else
      elementwise::step<2>(s, decay_, [=](double lambda) {
        return [=]<class V>(const V& w, V& g, std::array<V, 2>& x) -> V {
          x[1] = factor<V>(mu) * x[1] + direction(lambda, w, g, x[0]);
          return w - factor<V>(lr) * x[1];
        };
      });
  }

  /// The L2 penalty is left out, as Adam's is.
  std::optional<LinearRule> linear() const override {
    return LinearRule{.momentum = momentum_, .preconditioned = true};
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    const double distance = p.distance();
    elementwise::predict<1>(p, range, {&p.state.slots[1]},
                            [=]<class V>(const V& w, const std::array<V, 1>& x) -> V {
                              return w - factor<V>(distance) * x[0];
                            });
  }

 private:
  double alpha_, eps_, momentum_;
  WeightDecay decay_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(rmsprop, RmsProp, "RMSprop with momentum.")

}  // namespace pipewright
