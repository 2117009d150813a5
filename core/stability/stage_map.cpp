// SPDX-License-Identifier: Apache-2.0
#include "core/stability/stage_map.h"

#include <cmath>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

/// Σ_{j=1..s} β^j, as the optimizer computes it: 0 for s ≤ 0.
double geometric_sum(double momentum, int steps) {
  double sum = 0;
  for (int j = 1; j <= steps; ++j) sum += std::pow(momentum, j);
  return sum;
}

}  // namespace

UpdateMap update_map(const LinearRule& rule, double lr, double scale, double drift_decay) {
  UpdateMap update;
  const double l2 = lr * rule.l2;
  StateRow& velocity = update.map[kVelocity];
  velocity[kWeight] = rule.fresh() * l2;
  velocity[kVelocity] = rule.momentum;
  update.of_gradient[kVelocity] = rule.fresh();
  StateRow& weight = update.map[kWeight];
  weight[kWeight] = 1 - scale * (lr * rule.decoupled + rule.of_velocity * velocity[kWeight] +
                                 rule.of_gradient * l2);
  weight[kVelocity] = -scale * rule.of_velocity * velocity[kVelocity];
  update.of_gradient[kWeight] = -scale * (rule.of_velocity * rule.fresh() + rule.of_gradient);
  update.map[kLastGradient][kWeight] = l2;
  update.of_gradient[kLastGradient] = 1;
  StateRow& drift = update.map[kDrift];
  drift[kWeight] = (1 - drift_decay) * (weight[kWeight] - 1);
  drift[kVelocity] = (1 - drift_decay) * weight[kVelocity];
  drift[kDrift] = drift_decay < 1 ? drift_decay : 0;
  update.of_gradient[kDrift] = (1 - drift_decay) * update.of_gradient[kWeight];
  return update;
}

StateRow reading_row(const LinearRule& rule, double lr, const PredictionRule& prediction,
                     const Reading& reading) {
  using Kind = PredictionRule::Kind;
  StateRow row{1, 0, 0, 0};
  if (reading.ahead == 0) return row;
  if (prediction.kind == Kind::Drift) {
    row[kDrift] = reading.ahead;
    return row;
  }
  const double distance = reading.scale * reading.ahead;
  const Kind kind =
      rule.knows(prediction.kind == Kind::Lookahead) ? prediction.kind : Kind::Optimizer;
  row[kVelocity] = -distance;
  if (kind == Kind::Lookahead) {
    row[kVelocity] = -distance * rule.momentum;
    row[kLastGradient] = -distance * prediction.decay * (1 - rule.dampening);
  }
  if (kind == Kind::Geometric)
    row[kVelocity] = -reading.scale * geometric_sum(rule.momentum, reading.ahead);
  if (prediction.weight_decay) row[kWeight] -= distance * lr * rule.decoupled;
  return row;
}

double drift_decay_of(const Recurrence& recurrence, int stage) {
  double decay = 1;
  const auto note = [&](const Reading& reading) {
    const PredictionRule& rule = recurrence.rules[as_size(reading.rule)];
    if (reading.ahead != 0 && rule.kind == PredictionRule::Kind::Drift) decay = rule.decay;
  };
  for (const auto& updates : recurrence.stages)
    for (const StageUpdate& update : updates)
      for (const GradientTerm& term : update.terms) {
        if (as_size(stage) < term.forward.size()) note(term.forward[as_size(stage)]);
        if (&updates == &recurrence.stages[as_size(stage)]) note(term.backward);
      }
  return decay;
}

}  // namespace pipewright
