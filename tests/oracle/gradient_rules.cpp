// SPDX-License-Identifier: Apache-2.0
#include "gradient_rules.h"

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

void clip(const RuleOptions& rule, double model_square, Tensors& gradient) {
  const double squares = rule.over_model ? model_square : square_of(gradient);
  const double factor = std::min(1.0, rule.norm / (std::sqrt(squares) + 1e-6));
  for (Matrix& each : gradient) each *= factor;
}

void compensate(const RuleOptions& rule, State& state, const Tensors& read, Tensors& gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const Matrix square = gradient[i].cwiseProduct(gradient[i]);
    Matrix lambda = Matrix::Constant(square.rows(), square.cols(), rule.lambda);
    if (rule.adaptive) {
      Matrix& mean = state.gradient_square[i];
      mean = rule.decay * mean + (1 - rule.decay) * square;
      lambda = (rule.lambda / (mean.array() + rule.eps).sqrt()).matrix();
    }
    gradient[i] += lambda.cwiseProduct(square).cwiseProduct(state.weights[i] - read[i]);
  }
}

void penalize(const RuleOptions& rule, const State& state, const Tensors& read, double peak_rate,
              Tensors& gradient) {
  if (state.steps == 0) return;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const Matrix step =
        ((state.step_square[i].array() / (1 - std::pow(rule.decay, state.steps))).sqrt() + rule.eps)
            .matrix();
    const Matrix gap = (state.weights[i] - read[i]).cwiseAbs();
    gradient[i] =
        (gradient[i].array() / (1 + gap.array() / (peak_rate * step.array()))).matrix().eval();
  }
}

void note_square(const RuleOptions& rule, const State& before, State& after, double rate) {
  for (std::size_t i = 0; i < after.weights.size(); ++i) {
    Matrix& mean = after.step_square[i];
    mean *= rule.decay;
    if (rate == 0) continue;
    const Matrix velocity = (before.weights[i] - after.weights[i]) / rate;
    mean += (1 - rule.decay) * velocity.cwiseProduct(velocity);
  }
}

void feed_back(const RuleOptions& rule, const State& before, State& after) {
  const Tensors update = combine(1.0, before.weights, -1.0, after.weights);
  if (before.steps > 0) {
    const Tensors change = combine(1.0, update, -1.0, before.update);
    after.weights = combine(1.0, after.weights, -rule.coefficient, change);
  }
  after.update = update;
}

}  // namespace

double square_of(const Tensors& gradient) {
  double squares = 0;
  for (const Matrix& each : gradient) squares += each.squaredNorm();
  return squares;
}

Tensors ruled(const Experiment& experiment, State& state, const Tensors& read, double model_square,
              Tensors gradient) {
  for (const RuleOptions& rule : experiment.rules) {
    if (rule.name == "clip") clip(rule, model_square, gradient);
    if (rule.name == "dc_asgd") compensate(rule, state, read, gradient);
    if (rule.name == "gap_aware") penalize(rule, state, read, experiment.optimizer.lr, gradient);
  }
  return gradient;
}

void note_step(const Experiment& experiment, const State& before, State& after, double rate) {
  for (const RuleOptions& rule : experiment.rules) {
    if (rule.name == "gap_aware") note_square(rule, before, after, rate);
    if (rule.name == "error_feedback") feed_back(rule, before, after);
  }
}

double rate_of_staleness(const Experiment& experiment, int staleness) {
  double factor = 1;
  for (const RuleOptions& rule : experiment.rules)
    if (rule.name == "staleness_lr") factor /= std::pow(std::max(1, staleness), rule.power);
  return factor;
}

}  // namespace oracle
