// SPDX-License-Identifier: Apache-2.0
// SpecTrain (Chen, Yang, Cheng, 2018): 1F1B without flush; weights are predicted s steps ahead with
// the momentum, Ŵ = W − s·lr·v. Version 1, the paper's: forward s = ⌊k/2⌋ + D, backward ⌊k/2⌋, each
// predicted anew. Version 2: forward s = D, and the backward reuses the very same Ŵ.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class SpecTrain final : public Scheme {
 public:
  explicit SpecTrain(Options& options)
      : version_(options.choice("version", {1, 2}, 1,
                                "Prediction rule. 1: the paper's, which predicts for forward and "
                                "backward; 2: one prediction, which the backward reuses.")),
        steady_(options.choice(
                    "s_mode", {"constant", "exact"}, "constant",
                    "Number of steps that the first forwards after a fill predict. constant: "
                    "as in the paper; exact: the updates that are really pending.") == "constant"),
        velocity_(options.choice(
            "velocity", {"buffer", "lookahead", "geometric"}, "buffer",
            "Step that is predicted. buffer: the momentum buffer v; lookahead: μ·v + last gradient "
            "in "
            "the forward and μ·v in the backward, as in the authors' code; geometric: Σ μ^j v.")),
        last_lr_(options.choice(
                     "prediction_lr", {"next", "last"}, "next",
                     "Learning rate that a forward predicts with. next: that of the stage's next "
                     "update; last: that of its last one, a defect of the authors' code: when "
                     "the rate changes between epochs, D+1 forwards still predict with the old "
                     "one. Their version 1 is velocity: lookahead with prediction_lr: last.") ==
                 "last"),
        as_coded_(
            options.flag("as_coded", false,
                         "Whether to do what the authors' code of version 2 does: PipeDream with "
                         "the learning rate of stage k multiplied by N−k, without predictions.")),
        refill_(options.flag(
            "refill", true,
            "With as_coded: whether the queue of stashed versions is filled anew when the pipe has "
            "been drained. false: a defect of the authors' code, as in pipedream. Their version 2 "
            "is as_coded: true with refill: false.")) {
    if (as_coded_ && version_ != 2)
      options.problem("as_coded",
                      "is true, which needs version: 2; for version 1 as coded set velocity: "
                      "lookahead and prediction_lr: last");
    if (as_coded_ && last_lr_)
      options.problem("prediction_lr", "is last, but with as_coded: true nothing is predicted");
    if (!as_coded_ && !refill_)
      options.problem("refill",
                      "is false, which needs as_coded: true; otherwise nothing is stashed");
  }

  Schedule schedule(const PipelineShape& shape) const override {
    if (as_coded_) {
      const ScaleRule scale = [&](int stage) { return static_cast<double>(shape.stages - stage); };
      return refill_ ? pipeline_schedule(shape, {.flush = false}, latest_weights, forward_weights,
                                         scale)
                     : unfilled_stash_schedule(shape, scale);
    }
    const WeightRule forward = [&](const PassPlace& pass) {
      return Weights::latest(pass.distance(steady_) + beyond(pass.stage), kForwardRule);
    };
    const WeightRule backward = [&](const PassPlace& pass) {
      return version_ == 2 ? Weights::of_forward()
                           : Weights::latest(beyond(pass.stage), backward_rule(pass));
    };
    Schedule schedule = pipeline_schedule(shape, {.flush = false}, forward, backward);
    schedule.rules = rules();
    return schedule;
  }
  bool repeats() const override { return true; }

 private:
  static constexpr int kForwardRule = 0, kBackwardRule = 1;

  /// How many local steps beyond its own update a pass predicts. Version 1 aims both passes at the
  /// time the mini-batch leaves stage 0: ⌊k/2⌋ steps.
  int beyond(int stage) const { return version_ == 1 ? stage / 2 : 0; }

  /// On the last stage the backward follows its forward at once, so both predict for the same time,
  /// and an equal rule makes them the same prediction.
  int backward_rule(const PassPlace& pass) const {
    const bool same = pass.stage == pass.stages - 1 && velocity_ != "lookahead" && !last_lr_;
    return same ? kForwardRule : kBackwardRule;
  }

  std::vector<PredictionRule> rules() const {
    using Kind = PredictionRule::Kind;
    if (velocity_ == "lookahead")
      return {{.kind = Kind::Lookahead, .decay = 1, .last_lr = last_lr_},
              {.kind = Kind::Lookahead, .decay = 0}};
    const Kind kind = velocity_ == "geometric" ? Kind::Geometric : Kind::Optimizer;
    return {{.kind = kind, .last_lr = last_lr_}, {.kind = kind}};
  }

  int version_;
  bool steady_;
  std::string velocity_;
  bool last_lr_;
  bool as_coded_;
  bool refill_;
};

}  // namespace

PIPEWRIGHT_SCHEME(spectrain, SpecTrain,
                  "SpecTrain: momentum-based weight prediction (Chen et al., 2018).")

}  // namespace pipewright
