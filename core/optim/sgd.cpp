// SPDX-License-Identifier: Apache-2.0
// SGD with momentum μ, dampening τ, weight decay λ and Nesterov, as in PyTorch:
//   g' = g + λW;  v ← μv + (1−τ)g' (first step: v = g');  W ← W − lr·v, Nesterov: W − lr·(g' + μv)
// Prediction: Ŵ = W − s·lr·v with the momentum buffer v, also for Nesterov; if μ = 0, v is the last
// g'.
#include <cmath>

#include "core/optim/elementwise.h"
#include "core/optim/momentum.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;

class Sgd final : public MomentumByDelay<Sgd> {
 public:
  explicit Sgd(Options& options)
      : MomentumByDelay(options, 1e-3),
        momentum_(read_momentum(options)),
        dampening_(
            options.number("dampening", 0,
                           "Dampening τ: the gradient enters the momentum with the factor 1 − τ.")),
        decay_(options, 0, "Weight decay λ, an L2 penalty added to the gradient."),
        nesterov_(options.flag("nesterov", false,
                               "Whether the momentum is Nesterov's. Weights are predicted along "
                               "the momentum buffer v, not along Nesterov's step g + μv.")) {
    read_by_delay(options, "momentum", momentum_);
    if (nesterov_ && (momentum_ <= 0 || dampening_ != 0))
      options.problem("nesterov", "is true, which needs a momentum above 0 and dampening: 0");
  }

  double& own_momentum() { return momentum_; }
  std::vector<std::string> slot_names(bool predicts) const override {
    if (momentum_ != 0 || predicts) return {"momentum_buffer"};
    return {};
  }

  void step(const OptimizerStep& s) const override {
    const bool first = s.state.steps++ == 0;
    const double lr = s.lr, mu = momentum_;
    if (s.state.slots.empty())
      elementwise::step<0>(s, decay_, [=](double lambda) {
        return [=]<class V>(const V& w, V& g, std::array<V, 0>&) -> V {
          add_decay(lambda, w, g);
          return w - factor<V>(lr) * g;
        };
      });
    else if (nesterov_)
      elementwise::step<1>(s, decay_, [=](double lambda) {
        return [=]<class V>(const V& w, V& g, std::array<V, 1>& v) -> V {
          add_decay(lambda, w, g);
          v[0] = factor<V>(mu) * v[0] + g;
          return w - factor<V>(lr) * (g + factor<V>(mu) * v[0]);
        };
      });
    else {
      const double fresh = first || mu == 0 ? 1 : 1 - dampening_;
      elementwise::step<1>(s, decay_, [=](double lambda) {
        return [=]<class V>(const V& w, V& g, std::array<V, 1>& v) -> V {
          add_decay(lambda, w, g);
          v[0] = factor<V>(mu) * v[0] + factor<V>(fresh) * g;
          return w - factor<V>(lr) * v[0];
        };
      });
    }
  }

  std::optional<LinearRule> linear() const override {
    return LinearRule{.momentum = momentum_,
                      .dampening = dampening_,
                      .of_velocity = nesterov_ ? momentum_ : 1,
                      .of_gradient = nesterov_ ? 1.0 : 0,
                      .l2 = decay_.most(),
                      .knows_all_predictions = true};
  }

  bool predicts_by(PredictionRule::Kind) const override { return true; }

  void predict(const Prediction& p, const FlatRange& range) const override {
    const bool moves = p.state.steps > 0 && p.steps != 0;
    const double distance = moves ? p.distance() : 0;
    if (p.rule.kind == PredictionRule::Kind::Lookahead) {
      const double of_velocity = distance * momentum_;
      const double of_gradient = distance * p.rule.decay * (1 - dampening_);
      elementwise::predict<2>(
          p, range, {&p.state.slots[0], &p.state.last_gradient},
          [=]<class V>(const V& w, const std::array<V, 2>& x) -> V {
            return w - (factor<V>(of_velocity) * x[0] + factor<V>(of_gradient) * x[1]);
          });
      return;
    }
    const bool decays = moves && p.rule.kind == PredictionRule::Kind::Geometric;
    const double of_velocity = decays ? geometric_distance(p) : distance;
    elementwise::predict<1>(p, range, {&p.state.slots[0]},
                            [=]<class V>(const V& w, const std::array<V, 1>& v) -> V {
                              return w - factor<V>(of_velocity) * v[0];
                            });
  }

 private:
  template <class V>
  static void add_decay(double lambda, const V& w, V& g) {
    if (lambda != 0) g = g + factor<V>(lambda) * w;
  }

  /// Σ lr_j μ^j.
  double geometric_distance(const Prediction& p) const {
    if (p.rates.empty()) return p.lr * geometric_sum(p.steps);
    double sum = 0;
    for (int j = 1; j <= p.steps; ++j) sum += p.rate_of(j - 1) * std::pow(momentum_, j);
    return sum;
  }

  double geometric_sum(int steps) const {
    double sum = 0;
    for (int j = 1; j <= steps; ++j) sum += std::pow(momentum_, j);
    return sum;
  }

  double momentum_, dampening_;
  WeightDecay decay_;
  bool nesterov_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(
    sgd, Sgd, "Stochastic gradient descent with momentum, dampening, Nesterov, weight decay.")

}  // namespace pipewright
