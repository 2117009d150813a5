// SPDX-License-Identifier: Apache-2.0
// PipeOptim (Guan et al., 2023): 1F1B without flush; the forward predicts D = N−1−k steps ahead by
// the optimizer's own rule, the backward uses the newest true weights. Nothing is stashed.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class PipeOptim final : public Scheme {
 public:
  explicit PipeOptim(Options& options)
      : offset_(
            options.choice("s_offset", {0, 1}, 0,
                           "Number added to the steps predicted: 0 as in the paper, 1 as in the "
                           "authors' code, which also predicts on the last stage.")),
        steady_(options.choice(
                    "s_mode", {"constant", "exact"}, "constant",
                    "Number of steps that the first forwards after a fill predict. constant: "
                    "as in the paper; exact: the updates that are really pending.") == "constant"),
        velocity_(
            options.choice("velocity", {"buffer", "lookahead", "geometric"}, "buffer",
                           "Step that is predicted under SGD. buffer: the momentum buffer v; "
                           "lookahead: μ·v + last gradient, as in the authors' code; geometric: Σ "
                           "μ^j v, as gradients of 0 would move the weights, of Adam and AdamW, "
                           "too; FTPipe's prediction is that with prediction_lr: each.")),
        prediction_lr_(options.choice(
            "prediction_lr", {"next", "last", "each"}, "next",
            "Learning rate that a forward predicts with. next: that of the stage's next "
            "update; last: that of its last one, a defect of the authors' code for "
            "CIFAR: when the rate changes between epochs, D+1 forwards still predict with "
            "the old one. That code is s_offset: 1 and velocity: lookahead with "
            "prediction_lr: last. each: every predicted step has the rate of its own update.")),
        weight_decay_(options.flag("adamw_decay_in_prediction", false,
                                   "Whether decoupled weight decay, that of AdamW and its like, is "
                                   "predicted, too: W − s·lr·(step + λW).")) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const WeightRule forward = [&](const PassPlace& pass) {
      return Weights::latest(pass.distance(steady_) + offset_);
    };
    Schedule schedule = pipeline_schedule(shape, {.flush = false}, forward);
    using Kind = PredictionRule::Kind;
    const Kind kind = velocity_ == "lookahead"   ? Kind::Lookahead
                      : velocity_ == "geometric" ? Kind::Geometric
                                                 : Kind::Optimizer;
    schedule.rules = {{.kind = kind,
                       .weight_decay = weight_decay_,
                       .last_lr = prediction_lr_ == "last",
                       .each_lr = prediction_lr_ == "each"}};
    return schedule;
  }
  bool repeats() const override { return true; }

 private:
  int offset_;
  bool steady_;
  std::string velocity_;
  std::string prediction_lr_;
  bool weight_decay_;
};

}  // namespace

PIPEWRIGHT_SCHEME(pipeoptim, PipeOptim,
                  "PipeOptim: optimizer-dependent weight prediction (Guan et al., 2023).")

}  // namespace pipewright
