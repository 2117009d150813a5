// SPDX-License-Identifier: Apache-2.0
/// A schedule performed literally, action by action, on a quadratic loss with one weight a stage.
/// It shares nothing with core/stability: versions are looked up by their number when a pass asks
/// for them, and the optimizer is written as in its paper.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/as_size.h"
#include "core/schedule/prove.h"

namespace pipewright {

/// SGD with momentum.
struct WalkedSgd {
  double momentum = 0;
  bool nesterov = false;
};

class ActionWalk {
 public:
  struct Loss {
    std::vector<std::vector<double>> hessian;
    double discrepancy = 0;  ///< PipeMare's Δ, as a part of the diagonal
  };

  ActionWalk(const Schedule& schedule, const std::vector<ActionPlace>& order, WalkedSgd sgd,
             const Loss& loss, double lr)
      : schedule_(schedule), sgd_(sgd), loss_(loss), lr_(lr), next_scale_(schedule.workers.size()) {
    const int stages = schedule.shape.stages;
    for (int stage = 0; stage < stages * schedule.shape.replicas; ++stage)
      stages_.push_back({.versions = {1.0 + 0.1 * (stage % stages)}});
    for (std::size_t w = 0; w < schedule.workers.size(); ++w) note_scales(w);
    for (const auto& [worker, position] : order)
      perform(schedule.workers[as_size(worker)][as_size(position)],
              next_scale_[as_size(worker)][as_size(position)]);
  }

  /// The logarithm of the growth of a stage's weight from the second quarter of its updates to the
  /// last: the largest magnitude of each.
  double growth(int stage) const {
    const auto& all = stages_[as_size(stage)].versions;
    const auto largest = [&](std::size_t quarter) {
      double most = 0;
      for (std::size_t i = quarter * all.size() / 4; i < (quarter + 1) * all.size() / 4; ++i)
        most = std::max(most, std::abs(all[i]));
      return most;
    };
    return std::log(largest(3) / largest(1));
  }

 private:
  struct StageState {
    std::vector<double> versions;  ///< [updates]
    double velocity = 0, gradient = 0, last_gradient = 0, drift = 0;
    std::map<std::vector<int>, double> predictions;  ///< {version, ahead, rule}
    std::map<std::pair<int, int>, double> forwards;  ///< {mini-batch, micro-batch} → weight read
  };

  StageState& state_of(const Action& action, int stage) {
    return stages_[as_size(action.replica * schedule_.shape.stages + stage)];
  }

  void note_scales(std::size_t worker) {
    const auto& actions = schedule_.workers[worker];
    next_scale_[worker].assign(actions.size(), 1);
    std::map<std::pair<int, int>, double> next;
    for (std::size_t i = actions.size(); i-- > 0;) {
      const Action& each = actions[i];
      if (each.kind == ActionKind::Update) next[{each.stage, each.replica}] = each.scale;
      const auto found = next.find({each.stage, each.replica});
      if (found != next.end()) next_scale_[worker][i] = found->second;
    }
  }

  double weight_of(const Action& pass, double scale) {
    StageState& stage = state_of(pass, pass.stage);
    const Weights& asked = pass.weights;
    if (asked.source == Weights::Source::OfForward)
      return stage.forwards.at({pass.minibatch, pass.microbatch});
    const int latest = static_cast<int>(stage.versions.size()) - 1;
    const int version = asked.source == Weights::Source::Latest ? latest : asked.version;
    // A queue that is not refilled begins with copies of the first weights.
    if (asked.ahead == 0) return stage.versions[as_size(std::max(0, version))];
    const std::vector<int> name{version, asked.ahead, asked.rule};
    const auto known = stage.predictions.find(name);
    if (known != stage.predictions.end()) return known->second;
    return stage.predictions[name] = predicted(stage, asked, scale);
  }

  double predicted(const StageState& stage, const Weights& asked, double scale) const {
    const PredictionRule& rule = schedule_.rules[as_size(asked.rule)];
    const double w = stage.versions.back(), lr = lr_ * scale;
    double sum = 0;
    switch (rule.kind) {
      case PredictionRule::Kind::Optimizer: return w - asked.ahead * lr * stage.velocity;
      case PredictionRule::Kind::Lookahead:
        return w - asked.ahead * lr *
                       (sgd_.momentum * stage.velocity + rule.decay * stage.last_gradient);
      case PredictionRule::Kind::Geometric:
        for (int j = 1; j <= asked.ahead; ++j) sum += std::pow(sgd_.momentum, j);
        return w - lr * sum * stage.velocity;
      case PredictionRule::Kind::Drift: return w + asked.ahead * stage.drift;
    }
    return w;
  }

  void perform(const Action& action, double scale) {
    StageState& stage = state_of(action, action.stage);
    if (action.kind == ActionKind::Forward)
      stage.forwards[{action.minibatch, action.microbatch}] = weight_of(action, scale);
    if (is_part_of_backward(action.kind)) {
      const double own = weight_of(action, scale);
      if (makes_weight_gradient(action.kind)) stage.gradient += gradient_of(action, own);
    }
    if (action.kind == ActionKind::Update) update(action, stage);
  }

  double gradient_of(const Action& action, double backward) {
    const auto& row = loss_.hessian[as_size(action.stage)];
    const std::pair sample{action.minibatch, action.microbatch};
    double sum = 0;
    for (int j = 0; j <= action.loss; ++j)
      sum += row[as_size(j)] * state_of(action, j).forwards.at(sample);
    sum += loss_.discrepancy * row[as_size(action.stage)] *
           (state_of(action, action.stage).forwards.at(sample) - backward);
    return action.scale * sum / schedule_.shape.microbatches;
  }

  void update(const Action& action, StageState& stage) {
    const double g = stage.gradient, w = stage.versions.back();
    stage.gradient = 0;
    stage.last_gradient = g;
    stage.velocity = sgd_.momentum * stage.velocity + g;
    const double step = sgd_.nesterov ? g + sgd_.momentum * stage.velocity : stage.velocity;
    stage.versions.push_back(w - lr_ * action.scale * step);
    for (const PredictionRule& rule : schedule_.rules)  // one per stage: PipeMare's
      if (rule.kind == PredictionRule::Kind::Drift &&
          &rule == &schedule_.rules[as_size(action.stage + 1)])
        stage.drift = rule.decay * stage.drift + (1 - rule.decay) * (stage.versions.back() - w);
  }

  const Schedule& schedule_;
  WalkedSgd sgd_;
  const Loss& loss_;
  double lr_;
  std::vector<std::vector<double>> next_scale_;
  std::vector<StageState> stages_;
};

}  // namespace pipewright
