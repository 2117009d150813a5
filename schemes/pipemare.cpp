// SPDX-License-Identifier: Apache-2.0
// PipeMare (Yang, Zhang, Li, Ré, Aberger and De Sa, 2021): 1F1B without flush and without stashing:
// the forward uses the newest weights, and so does the backward, τ = D/M updates later, unless
// three techniques make up for it:
//  T1 the learning rate of stage k is divided by τ^p, p = 1 − min(i/K, 1) in the i-th update;
//  T2 the backward extrapolates back to the weights of its forward, Ŵ = W − s·δ, s the updates
//     since then, δ ← γδ + (1−γ)(new W − old W), γ = D^(1/τ), here `decay`^(1/τ);
//  T3 the first updates are synchronous.
// A delay τ of less than one update counts as one.
#include <algorithm>
#include <cmath>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class PipeMare final : public Scheme {
 public:
  explicit PipeMare(Options& options)
      : annealing_(
            options.integer("annealing", 1000,
                            "T1: number of mini-batches (K) over which stages reach the full "
                            "learning rate; 0 = they have it at once.",
                            kNotNegative)),
        correction_(
            options.flag("correction", true,
                         "T2: whether backwards extrapolate to the weights of their forward.")),
        decay_(options.number("decay", 0.135,
                              "T2: fraction of the running average of the weights' drift that "
                              "remains after τ updates (the paper's D).",
                              kFraction)),
        warmup_(options.integer(
            "warmup", 0, "T3: number of mini-batches that are trained synchronously at first.",
            kNotNegative)) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const auto synchronous = static_cast<int>(
        std::clamp<std::int64_t>(warmup_ - shape.first_minibatch, 0, shape.minibatches));
    PipelineShape first = shape, rest = shape;
    first.minibatches = synchronous;
    rest.minibatches = shape.minibatches - synchronous;
    Schedule schedule = empty_schedule(shape);
    if (first.minibatches > 0) append(schedule, flushed(first), 0);
    if (rest.minibatches > 0) append(schedule, asynchronous(rest), synchronous);
    rescale(schedule);
    if (!correction_) return schedule;
    for (int stage = 0; stage < shape.stages; ++stage)
      schedule.rules.push_back({.kind = PredictionRule::Kind::Drift,
                                .decay = std::pow(decay_, 1 / delay(shape, stage))});
    return schedule;
  }

  std::string remark() const override {
    return "pipemare: its delays are those of 1F1B, D/M updates, about half of those of the "
           "paper's "
           "pipeline; the paper tunes K and D for each task; unverified against the authors' code";
  }

 private:
  /// The delay τ of a stage, in updates; at least 1.
  static double delay(const PipelineShape& shape, int stage) {
    return std::max(1.0, static_cast<double>(shape.stages - 1 - stage) / shape.microbatches);
  }

  /// The prediction rule of a pass; 0 if nothing is corrected. A stage tracks its drift from its
  /// first pass that names the rule, so the passes of the synchronous phase name it, too.
  int rule_of(const PassPlace& pass) const { return correction_ ? 1 + pass.stage : 0; }

  Schedule flushed(const PipelineShape& shape) const {
    const WeightRule backward = [&](const PassPlace& pass) {
      return Weights::latest(0, rule_of(pass));
    };
    return pipeline_schedule(shape, {.flush = true}, latest_weights, backward);
  }

  Schedule asynchronous(const PipelineShape& shape) const {
    const WeightRule backward = [&](const PassPlace& pass) {
      const int forwarded = pass.minibatch * pass.microbatches + pass.microbatch;
      const int read = std::max(0, forwarded - pass.depth()) / pass.microbatches;
      return Weights::latest(correction_ ? read - pass.minibatch : 0, rule_of(pass));
    };
    return pipeline_schedule(shape, {.flush = false}, latest_weights, backward);
  }

  static void append(Schedule& schedule, const Schedule& part, int first_minibatch) {
    for (std::size_t worker = 0; worker < part.workers.size(); ++worker)
      for (Action action : part.workers[worker]) {
        action.minibatch += first_minibatch;
        schedule.workers[worker].push_back(action);
      }
  }

  void rescale(Schedule& schedule) const {
    for (auto& worker : schedule.workers)
      for (Action& action : worker) {
        const std::int64_t update = schedule.shape.first_minibatch + action.minibatch - warmup_;
        if (action.kind != ActionKind::Update || update < 0 || update >= annealing_) continue;
        const double power = 1 - static_cast<double>(update) / static_cast<double>(annealing_);
        action.scale = std::pow(delay(schedule.shape, action.stage), -power);
      }
  }

  std::int64_t annealing_;
  bool correction_;
  double decay_;
  std::int64_t warmup_;
};

}  // namespace

PIPEWRIGHT_SCHEME(pipemare, PipeMare,
                  "PipeMare: asynchronous without stashing, with rescaled learning rates and "
                  "corrected backwards (Yang et al., 2021).")

}  // namespace pipewright
