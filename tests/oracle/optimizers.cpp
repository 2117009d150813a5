// SPDX-License-Identifier: Apache-2.0
#include "optimizers.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace oracle {
namespace {

bool is_sgd(const OptimizerOptions& options) {
  return options.name == "sgd";
}
bool is_adamw(const OptimizerOptions& options) {
  return options.name == "adamw";
}

/// Whether weights decay apart from the gradient.
bool decays_weights(const OptimizerOptions& options) {
  return !is_sgd(options) && options.name != "adam" && options.name != "spike_compensation" &&
         options.name != "rmsprop";
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

void step_compensated(const OptimizerOptions& options, State& state, double lr, int late) {
  const double power = std::pow(options.momentum, options.delay < 0 ? late : options.delay);
  state.first = combine(options.momentum, state.first, 1.0, state.last);
  const Tensors direction =
      combine(power, state.first, (1.0 - power) / (1.0 - options.momentum), state.last);
  state.weights = combine(1.0, state.weights, -lr, direction);
}

void step_rmsprop(const OptimizerOptions& options, State& state, double lr) {
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    const Matrix& g = state.last[i];
    state.second[i] = options.alpha * state.second[i] + (1.0 - options.alpha) * g.cwiseProduct(g);
    const Matrix direction = (g.array() / (state.second[i].array().sqrt() + options.eps)).matrix();
    state.first[i] = options.momentum * state.first[i] + direction;
  }
  state.weights = combine(1.0, state.weights, -lr, state.first);
}

void step_lion(const OptimizerOptions& options, State& state, double lr) {
  const Tensors mixed = combine(options.beta1, state.first, 1.0 - options.beta1, state.last);
  Tensors direction;
  for (const Matrix& each : mixed) direction.emplace_back(each.array().sign().matrix());
  state.weights = combine(1.0 - lr * options.weight_decay, state.weights, -lr, direction);
  state.first = combine(options.beta2, state.first, 1.0 - options.beta2, state.last);
}

void step_nadamw(const OptimizerOptions& options, State& state, double lr) {
  const auto momentum = [&](int t) {
    return options.beta1 * (1.0 - 0.5 * std::pow(0.96, t * options.momentum_decay));
  };
  const double mu = momentum(state.steps), next = momentum(state.steps + 1);
  state.product *= mu;
  const double correction2 = 1.0 - std::pow(options.beta2, state.steps);
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    const auto g = state.last[i].array();
    state.first[i] = options.beta1 * state.first[i] + (1.0 - options.beta1) * state.last[i];
    state.second[i] =
        (options.beta2 * state.second[i].array() + (1.0 - options.beta2) * g * g).matrix();
    const auto divisor = (state.second[i].array() / correction2).sqrt() + options.eps;
    const auto moved = ((1.0 - mu) / (1.0 - state.product) * g +
                        next / (1.0 - state.product * next) * state.first[i].array()) /
                       divisor;
    state.weights[i] =
        ((1.0 - lr * options.weight_decay) * state.weights[i].array() - lr * moved).matrix();
  }
}

/// (m̂ + β₂ v̂)/(√û + ε) after `state.steps` steps.
Tensors adan_direction(const OptimizerOptions& options, const State& state) {
  Tensors direction;
  for (std::size_t i = 0; i < state.first.size(); ++i) {
    const auto m = state.first[i].array() / (1.0 - std::pow(options.beta1, state.steps));
    const auto v = state.third[i].array() / (1.0 - std::pow(options.beta2, state.steps));
    const auto u = state.second[i].array() / (1.0 - std::pow(options.beta3, state.steps));
    direction.emplace_back(((m + options.beta2 * v) / (u.sqrt() + options.eps)).matrix());
  }
  return direction;
}

void step_adan(const OptimizerOptions& options, const Tensors& before, State& state, double lr) {
  const Tensors difference =
      state.steps == 1 ? zeros_like(before) : combine(1.0, state.last, -1.0, before);
  Tensors squares = combine(1.0, state.last, options.beta2, difference);
  for (Matrix& each : squares) each = each.cwiseProduct(each);
  state.first = combine(options.beta1, state.first, 1.0 - options.beta1, state.last);
  state.third = combine(options.beta2, state.third, 1.0 - options.beta2, difference);
  state.second = combine(options.beta3, state.second, 1.0 - options.beta3, squares);
  const double kept = 1.0 / (1.0 + lr * options.weight_decay);
  state.weights = combine(kept, state.weights, -lr * kept, adan_direction(options, state));
}

Matrix newton_schulz(const Matrix& of) {
  Matrix x = of / std::max(of.norm(), 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Matrix gram = x * x.transpose();
    x = (3.4445 * x + (-4.7750 * gram + 2.0315 * gram * gram) * x).eval();
  }
  return x;
}

/// A bias is a matrix of one row; no layer of the oracle has one output.
void step_muon(const OptimizerOptions& options, State& state, double lr) {
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    const Matrix& g = state.last[i];
    Matrix& m = state.first[i];
    if (g.rows() > 1) {
      m = options.momentum * m + (1.0 - options.momentum) * g;
      const Matrix nesterov = (1.0 - options.momentum) * g + options.momentum * m;
      const Matrix& ahead = options.plain ? m : nesterov;
      const double taller = static_cast<double>(g.rows()) / static_cast<double>(g.cols());
      state.moved[i] = std::sqrt(std::max(1.0, taller)) * newton_schulz(ahead);
    } else {
      m = 0.9 * m + 0.1 * g;
      state.second[i] = 0.999 * state.second[i] + 0.001 * g.cwiseProduct(g);
      const auto root = (state.second[i].array() / (1.0 - std::pow(0.999, state.steps))).sqrt();
      state.moved[i] = (m.array() / (1.0 - std::pow(0.9, state.steps)) / (root + 1e-8)).matrix();
    }
  }
  state.weights = combine(1.0 - lr * options.weight_decay, state.weights, -lr, state.moved);
}

/// Puts the columns of a basis in the order of the diagonal of QᵀSQ, the largest first, and returns
/// that order.
std::vector<int> sort_basis(const Matrix& square, Matrix& basis) {
  const Eigen::VectorXd lengths = (basis.transpose() * square * basis).diagonal();
  std::vector<int> order(static_cast<std::size_t>(basis.cols()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] > lengths[b]; });
  basis = Matrix(basis(Eigen::all, order));
  return order;
}

Matrix eigenvectors(const Matrix& square) {
  Matrix basis = Eigen::SelfAdjointEigenSolver<Matrix>(square).eigenvectors();
  sort_basis(square, basis);
  return basis;
}

Matrix orthogonal_part(const Matrix& of) {
  return Eigen::HouseholderQR<Matrix>(of).householderQ();
}

/// A bias is a matrix of one row.
void step_soap(const OptimizerOptions& options, State& state, double lr) {
  const int t = state.steps - 1;
  const double decay = 1.0 - lr * options.weight_decay;
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    const Matrix& g = state.last[i];
    const bool turned = g.rows() > 1;
    Matrix &left = state.left[i], &right = state.right[i], &m = state.first[i];
    Matrix &u = state.second[i], &rows = state.left_basis[i], &columns = state.right_basis[i];
    if (t > 0) {
      const Matrix G = turned ? Matrix(rows.transpose() * g * columns) : g;
      m = options.beta1 * m + (1.0 - options.beta1) * G;
      u = options.beta2 * u + (1.0 - options.beta2) * G.cwiseProduct(G);
      const Matrix step = (m.array() / (u.array().sqrt() + options.eps)).matrix();
      state.moved[i] = std::sqrt(1.0 - std::pow(options.beta2, t)) /
                       (1.0 - std::pow(options.beta1, t)) *
                       (turned ? Matrix(rows * step * columns.transpose()) : step);
      state.weights[i] = decay * (state.weights[i] - lr * state.moved[i]);
    }
    if (!turned) continue;
    left = options.beta2 * left + (1.0 - options.beta2) * g * g.transpose();
    right = options.beta2 * right + (1.0 - options.beta2) * g.transpose() * g;
    if (t == 0) {
      rows = eigenvectors(left);
      columns = eigenvectors(right);
    } else if (t % options.frequency == 0) {
      const Matrix original = rows * m * columns.transpose();
      const std::vector<int> by_row = sort_basis(left, rows);
      const std::vector<int> by_column = sort_basis(right, columns);
      u = Matrix(u(by_row, by_column));
      rows = orthogonal_part(left * rows);
      columns = orthogonal_part(right * columns);
      m = rows.transpose() * original * columns;
    }
  }
}

/// Δ of the optimizers that know one velocity, the decay left out.
Tensors own_direction(const OptimizerOptions& options, const State& state) {
  if (options.name == "adan") return adan_direction(options, state);
  if (options.name == "muon" || options.name == "soap") return state.moved;
  if (options.name == "spike_compensation" || options.name == "rmsprop") return state.first;
  if (options.name != "lion") return adam_direction(options, state);
  Tensors direction;
  for (const Matrix& each : state.first) direction.emplace_back(each.array().sign().matrix());
  return direction;
}

/// FTPipe's prediction: the steps of Adam or AdamW with gradients of 0.
Tensors decaying(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                 const std::vector<double>& rates) {
  State ahead = state;
  for (const double rate : rates) {
    ++ahead.steps;
    for (Matrix& m : ahead.first) m *= options.beta1;
    const bool decays = is_adamw(options) && scheme.adamw_decay_in_prediction;
    ahead.weights = combine(decays ? 1.0 - rate * options.weight_decay : 1.0, ahead.weights, -rate,
                            adam_direction(options, ahead));
  }
  return ahead.weights;
}

/// s·Δ of the doc comment.
Tensors advance(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                int ahead, Pass pass) {
  const double s = ahead;
  const double mu = options.momentum;
  if (!is_sgd(options)) {
    const bool decay = decays_weights(options) && scheme.adamw_decay_in_prediction;
    return combine(s, own_direction(options, state), decay ? s * options.weight_decay : 0.0,
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

/// Every parameter steps by itself: a weight as where all decay, a bias as where none does.
State step_without_decay_of_biases(OptimizerOptions options, const State& state,
                                   const Tensors& gradient, double lr, int late) {
  options.biases_decay = true;
  State next = step(options, state, gradient, lr, late);
  options.weight_decay = 0;
  const State free = step(options, state, gradient, lr, late);
  for (auto tensors :
       {&State::weights, &State::first, &State::second, &State::last, &State::third, &State::moved})
    for (std::size_t bias = 1; bias < (next.*tensors).size(); bias += 2)
      (next.*tensors)[bias] = (free.*tensors)[bias];
  return next;
}

}  // namespace

State initial_state(Tensors weights) {
  State state;
  state.first = state.second = state.third = state.last = state.moved = state.drift =
      state.gradient_square = state.step_square = state.update = zeros_like(weights);
  for (const Matrix& each : weights) {
    state.left.push_back(Matrix::Zero(each.rows(), each.rows()));
    state.right.push_back(Matrix::Zero(each.cols(), each.cols()));
  }
  state.left_basis = state.left;
  state.right_basis = state.right;
  state.weights = std::move(weights);
  return state;
}

State step(const OptimizerOptions& options, const State& state, const Tensors& gradient, double lr,
           int late) {
  if (!options.biases_decay)
    return step_without_decay_of_biases(options, state, gradient, lr, late);
  State next = state;
  ++next.steps;
  const double coupled_decay = decays_weights(options) ? 0.0 : options.weight_decay;
  next.last = combine(1.0, gradient, coupled_decay, state.weights);
  if (is_sgd(options))
    step_sgd(options, next, lr);
  else if (options.name == "spike_compensation")
    step_compensated(options, next, lr, late);
  else if (options.name == "rmsprop")
    step_rmsprop(options, next, lr);
  else if (options.name == "lion")
    step_lion(options, next, lr);
  else if (options.name == "nadamw")
    step_nadamw(options, next, lr);
  else if (options.name == "adan")
    step_adan(options, state.last, next, lr);
  else if (options.name == "muon")
    step_muon(options, next, lr);
  else if (options.name == "soap")
    step_soap(options, next, lr);
  else
    step_adam(options, next, lr);
  return next;
}

Tensors predict(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                int ahead, Pass pass, double lr, const std::vector<double>& each) {
  if (ahead == 0 || state.steps == 0) return state.weights;
  const std::vector<double> rates =
      each.empty() ? std::vector<double>(static_cast<std::size_t>(ahead), lr) : each;
  if (scheme.velocity == "geometric" && (options.name == "adam" || is_adamw(options)))
    return decaying(options, scheme, state, rates);
  if (scheme.velocity == "geometric" && !each.empty()) {
    double distance = 0;
    for (std::size_t j = 0; j < rates.size(); ++j)
      distance += rates[j] * std::pow(options.momentum, static_cast<double>(j + 1));
    return combine(1.0, state.weights, -distance, state.first);
  }
  double mean = 0;
  for (const double rate : rates) mean += rate / ahead;
  return combine(1.0, state.weights, each.empty() ? -lr : -mean,
                 advance(options, scheme, state, ahead, pass));
}

}  // namespace oracle
