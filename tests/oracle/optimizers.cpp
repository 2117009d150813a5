// SPDX-License-Identifier: Apache-2.0
#include "optimizers.h"

#include <cmath>
#include <utility>

namespace oracle {
namespace {

bool is_sgd(const OptimizerOptions& options) {
  return options.name == "sgd";
}
bool is_adamw(const OptimizerOptions& options) {
  return options.name == "adamw";
}

/// m̂ / (√û + ε) after `state.steps` steps.
Tensors adam_direction(const OptimizerOptions& options, const State& state) {
  const double correction1 = 1.0 - std::pow(options.beta1, state.steps);
  const double correction2 = 1.0 - std::pow(options.beta2, state.steps);
  Tensors direction;
  for (std::size_t i = 0; i < state.first.size(); ++i) {
    const auto root = (state.second[i].array() / correction2).sqrt();
    direction.emplace_back((state.first[i].array() / correction1 / (root + options.eps)).matrix());
  }
  return direction;
}

void step_sgd(const OptimizerOptions& options, State& state, double lr) {
  const Tensors& g = state.last;
  const bool first_step = state.steps == 1;
  if (options.momentum == 0.0 || first_step)
    state.first = g;
  else
    state.first = combine(options.momentum, state.first, 1.0 - options.dampening, g);
  const Tensors direction =
      options.nesterov ? combine(1.0, g, options.momentum, state.first) : state.first;
  state.weights = combine(1.0, state.weights, -lr, direction);
}

void step_adam(const OptimizerOptions& options, State& state, double lr) {
  Tensors squares;
  for (const Matrix& g : state.last) squares.emplace_back(g.cwiseProduct(g));
  state.first = combine(options.beta1, state.first, 1.0 - options.beta1, state.last);
  state.second = combine(options.beta2, state.second, 1.0 - options.beta2, squares);
  const double kept = is_adamw(options) ? 1.0 - lr * options.weight_decay : 1.0;
  state.weights = combine(kept, state.weights, -lr, adam_direction(options, state));
}

/// s·Δ of the doc comment.
Tensors advance(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                int ahead, Pass pass) {
  const double s = ahead;
  const double mu = options.momentum;
  if (!is_sgd(options)) {
    const bool decay = is_adamw(options) && scheme.adamw_decay_in_prediction;
    return combine(s, adam_direction(options, state), decay ? s * options.weight_decay : 0.0,
                   state.weights);
  }
  if (scheme.velocity == "lookahead") {
    const double fresh = pass == Pass::Forward ? 1.0 - options.dampening : 0.0;
    return combine(s * mu, state.first, s * fresh, state.last);
  }
  double factor = s;
  if (scheme.velocity == "geometric") {
    factor = 0.0;
    for (int j = 1; j <= ahead; ++j) factor += std::pow(mu, j);
  }
  return combine(factor, state.first, 0.0, state.first);
}

}  // namespace

State initial_state(Tensors weights) {
  State state;
  state.first = state.second = state.last = state.drift = zeros_like(weights);
  state.weights = std::move(weights);
  return state;
}

State step(const OptimizerOptions& options, const State& state, const Tensors& gradient,
           double lr) {
  State next = state;
  ++next.steps;
  const double coupled_decay = is_adamw(options) ? 0.0 : options.weight_decay;
  next.last = combine(1.0, gradient, coupled_decay, state.weights);
  if (is_sgd(options))
    step_sgd(options, next, lr);
  else
    step_adam(options, next, lr);
  return next;
}

Tensors predict(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                int ahead, Pass pass, double lr) {
  if (ahead == 0 || state.steps == 0) return state.weights;
  return combine(1.0, state.weights, -lr, advance(options, scheme, state, ahead, pass));
}

}  // namespace oracle
