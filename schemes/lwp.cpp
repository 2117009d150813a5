// SPDX-License-Identifier: Apache-2.0
// Linear weight prediction (Kosson, Chiley, Venigalla, Hestness and Köster, 2021, "Pipelined
// Backpropagation at Scale"): 1F1B without flush; a forward predicts T steps ahead, Ŵ = W − T·lr·v,
// and the backward computes with the same Ŵ. T is a multiple of the delay, the updates that are
// pending at the forward, or a number of steps. With T = delay it is `spectrain` with version: 2
// and s_mode: exact.
#include <cmath>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr double kMostSteps = 1e6;

class LinearWeightPrediction final : public Scheme {
 public:
  explicit LinearWeightPrediction(Options& options)
      : horizon_(options.number("horizon", 1,
                                "How far a forward predicts (T), in delays or in steps, see unit. "
                                "0 predicts nothing, which is pipedream; more than the delay "
                                "overshoots the weights that the gradient is applied to.",
                                {0, kMostSteps})),
        of_delay_(options.choice("unit", {"delay", "steps"}, "delay",
                                 "Unit of the horizon. delay: the updates of the stage that are "
                                 "pending at the forward, T is rounded to whole steps; steps: "
                                 "optimizer steps, the same on all stages.") == "delay") {
    if (!of_delay_ && std::fmod(horizon_, 1) != 0)
      options.problem("horizon",
                      concat("is ", horizon_, "; expected a whole number with unit: steps"));
  }

  Schedule schedule(const PipelineShape& shape) const override {
    const WeightRule predicted = [this](const PassPlace& pass) {
      const double unit = of_delay_ ? pass.distance(/*steady=*/false) : 1;
      return Weights::latest(static_cast<int>(std::lround(horizon_ * unit)));
    };
    return pipeline_schedule(shape, {.flush = false}, predicted, forward_weights);
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "lwp: that the backward computes with the predicted weights of its forward, and that "
           "the velocity v is the optimizer's own step, is unverified against the paper";
  }

 private:
  double horizon_;
  bool of_delay_;
};

}  // namespace

PIPEWRIGHT_SCHEME(lwp, LinearWeightPrediction,
                  "Linear weight prediction over any horizon (Kosson et al., 2021).")

}  // namespace pipewright
