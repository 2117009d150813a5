// SPDX-License-Identifier: Apache-2.0
// SGD with spike compensation (Kosson et al., 2021, arXiv 2003.11666), for gradients that are D
// updates late: the step that a gradient would have made meanwhile is made at once.
//   g' = g + λW;  v ← μv + g';  W ← W − lr·(a v + b g'),  a = μᴰ,  b = (1 − μᴰ)/(1 − μ)
// D = 0 is SGD with momentum, D = 1 its Nesterov. Weights are predicted along v, as with Nesterov.
// On a quadratic loss the training has the characteristic polynomial of one without compensation
// whose weights are predicted D updates ahead by the geometric velocity.
#include <cmath>

#include "core/optim/elementwise.h"
#include "core/optim/momentum.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

using elementwise::factor;

class SpikeCompensation final : public MomentumByDelay<SpikeCompensation> {
 public:
  explicit SpikeCompensation(Options& options)
      : MomentumByDelay(options, 1e-3),
        momentum_(read_momentum(options, 0.9)),
        delay_(static_cast<int>(options.integer(
            "delay", -1,
            "Updates D that gradients are late, at every stage; -1 = what the schedule says of "
            "each gradient: the updates that the stage has made since the forward, less the steps "
            "that its weights were predicted, of the micro-batch for which that is the most.",
            {-1, 1e6}))),
        decay_(options, 0, "Weight decay λ, an L2 penalty added to the gradient.") {
    read_by_delay(options, "momentum", momentum_);
  }

  double& own_momentum() { return momentum_; }
  std::vector<std::string> slot_names(bool) const override { return {"momentum_buffer"}; }

  std::string remark() const override {
    return "The formulas of spike compensation are from memory; they have not been compared with "
           "the paper's.";
  }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    const double power = std::pow(momentum_, delay_ < 0 ? s.staleness : delay_);
    const double of_velocity = power, of_gradient = (1 - power) / (1 - momentum_);
    const double lr = s.lr, mu = momentum_;
    elementwise::step<1>(s, decay_, [=](double lambda) {
      return [=]<class V>(const V& w, V& g, std::array<V, 1>& v) -> V {
        if (lambda != 0) g = g + factor<V>(lambda) * w;
        v[0] = factor<V>(mu) * v[0] + g;
        return w - factor<V>(lr) * (factor<V>(of_gradient) * g + factor<V>(of_velocity) * v[0]);
      };
    });
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    const double distance = p.distance();
    elementwise::predict<1>(p, range, {&p.state.slots[0]},
                            [=]<class V>(const V& w, const std::array<V, 1>& v) -> V {
                              return w - factor<V>(distance) * v[0];
                            });
  }

 private:
  double momentum_;
  int delay_;
  WeightDecay decay_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(spike_compensation, SpikeCompensation,
                     "SGD that makes up for late gradients by a larger first step.")

}  // namespace pipewright
