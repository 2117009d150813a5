// SPDX-License-Identifier: Apache-2.0
#include "core/stability/edges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/stability/crossing.h"
#include "core/stability/symmetric_gain.h"

namespace pipewright {
namespace {

/// Whether the smallest steps go uphill: without decay, the eigenvalues that begin at z = 1 then
/// leave the circle at once. The gain has a simple pole there.
bool climbs(const ClosedLoop& loop, const CircleGain& gain) {
  if (loop.decays()) return false;
  constexpr double kBeyondOne = 1e-7, kRounding = 1e-4;
  const Eigenvalues slopes = eigenvalues(gain.at(1 + kBeyondOne));
  double largest = 0, highest = 0;
  for (const std::complex<double>& each : slopes) {
    largest = std::max(largest, std::abs(each));
    highest = std::max(highest, each.real());
  }
  return highest > kRounding * largest;
}

double edge_of(const ClosedLoop& loop, const CircleGain& gain) {
  if (!loop.rests() || climbs(loop, gain)) return 0;
  return first_crossing(gain, loop.longest_delay());
}

double edge_of(const ClosedLoop& loop) {
  return edge_of(loop, {.at = [&](std::complex<double> z) { return loop.gain(z); }});
}

/// The edge of a stage whose every gradient is equally old and is applied by plain momentum.
std::optional<double> closed_form(const Dynamics& dynamics, int stage) {
  const LinearRule& rule = dynamics.rule;
  const auto& updates = dynamics.recurrence.stages[as_size(stage)];
  const bool plain = rule.of_velocity == 1 && rule.of_gradient == 0 &&
                     dynamics.lr * (rule.l2 + rule.decoupled) == 0 && rule.momentum < 1 &&
                     rule.fresh() > 0;
  if (!plain || updates.size() != 1 || updates.front().terms.empty()) return {};
  const auto own = [&](const GradientTerm& term) { return term.forward[as_size(stage)]; };
  const Reading read = own(updates.front().terms.front());
  double weight = 0;
  for (const GradientTerm& term : updates.front().terms) {
    const bool mismatch = dynamics.discrepancy != 0 && term.backward != own(term);
    if (own(term) != read || read.ahead != 0 || mismatch) return {};
    weight += term.weight;
  }
  if (weight <= 0 || updates.front().scale <= 0) return {};
  return heavy_ball_edge(-read.version, rule.momentum) /
         (rule.fresh() * updates.front().scale * weight);
}

std::vector<int> all_stages(const Recurrence& recurrence) {
  std::vector<int> stages(recurrence.stages.size());
  std::iota(stages.begin(), stages.end(), 0);
  return stages;
}

/// The stage of each row of a Hessian.
std::vector<int> stages_of_rows(const Recurrence& recurrence, const Blocks& blocks) {
  if (blocks.empty()) return all_stages(recurrence);
  std::vector<int> stages;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    stages.insert(stages.end(), as_size(blocks[stage]), static_cast<int>(stage));
  return stages;
}

ClosedLoop coupled_loop(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks,
                        double lr) {
  return {dynamics.recurrence,
          dynamics.rule,
          stages_of_rows(dynamics.recurrence, blocks),
          hessian,
          {.decay_lr = lr, .discrepancy = dynamics.discrepancy}};
}

/// How gradients read each stage's weights where the curvature is 1 everywhere.
class ColumnGain {
 public:
  using Complex = std::complex<double>;

  ColumnGain(const Dynamics& dynamics, double lr)
      : stages_(static_cast<int>(dynamics.recurrence.stages.size())),
        loop_(coupled_loop(dynamics,
                           Hessian(as_size(stages_), std::vector<double>(as_size(stages_), 1)), {},
                           lr)) {}

  /// Whether the gradients of all stages read a stage's weights in the same way. The gains are
  /// rational functions of z, and those that differ do so at three arbitrary places.
  bool is_the_same_for_all() const {
    if (loop_.updates() != stages_) return false;
    constexpr double kRounding = 1e-12;
    for (const Complex z : {std::polar(1.0, 0.7), std::polar(1.1, 1.9), std::polar(1.0, 2.9)}) {
      const SquareMatrix<Complex> gain = loop_.gain(z);
      for (int row = 1; row < stages_; ++row)
        for (int column = 0; column < stages_; ++column)
          if (std::abs(gain.at(row, column) - gain.at(0, column)) >
              kRounding * std::abs(gain.at(0, column)))
            return false;
    }
    return true;
  }

  std::vector<Complex> at(Complex z) const {
    const SquareMatrix<Complex> gain = loop_.gain(z);
    return {gain.numbers.begin(), gain.numbers.begin() + stages_};
  }

 private:
  int stages_;
  ClosedLoop loop_;
};

/// The first learning rate at which distances grow, where rates are tried in steps from below and
/// weights decay with each; `radius` says what distances are multiplied by.
double first_growing(double step, const std::function<double(double)>& radius) {
  constexpr int kHalvings = 50;
  constexpr double kRounding = 1e-13;
  const auto grows = [&](double lr) { return radius(lr) > 1 + kRounding; };
  double low = 0, high = step;
  while (!grows(high)) low = std::exchange(high, high + step);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::midpoint(low, high);
    (grows(middle) ? high : low) = middle;
  }
  return low;
}

/// The largest stable learning rate of weights that decay with that very rate. `edge_with` says the
/// edge with the decay at a given rate, and `radius` the spectral radius with both at one. A weak
/// decay hardly moves the edge, which then is a fixed point that each step nears by orders of
/// magnitude. With a strong one edges may jump, as delayed gradients can hold weights that their
/// decay alone would throw about.
double with_own_decay(const LinearRule& rule, const std::function<double(double)>& edge_with,
                      const std::function<double(double)>& radius) {
  const double undecayed = edge_with(0), decay = rule.l2 + rule.decoupled;
  if (decay == 0 || undecayed == 0 || !std::isfinite(undecayed)) return undecayed;
  constexpr double kWeak = 0.01, kAgreement = 1e-12;
  constexpr int kIterations = 8, kTried = 32;
  double lr = undecayed;
  for (int i = 0; i < kIterations && undecayed * decay < kWeak * (1 - rule.momentum); ++i) {
    const double next = edge_with(lr);
    if (std::abs(next - lr) <= kAgreement * lr) return next;
    lr = next;
  }
  const double shrinks_to_nothing = 1 / decay;  // in one update, without momentum
  return first_growing(std::min(undecayed, shrinks_to_nothing) / kTried, radius);
}

double edge_with_decay(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks,
                       double lr, const std::function<void()>& progress) {
  const ColumnGain columns(dynamics, lr);
  if (columns.is_the_same_for_all()) {
    const SymmetricGain gain(hessian, stages_of_rows(dynamics.recurrence, blocks));
    const auto loop = coupled_loop(dynamics, hessian, blocks, lr);
    return edge_of(
        loop, {.at = [&](std::complex<double> z) { return gain.at(columns.at(z)); },
               .is_below = [&](std::complex<double> z, double bound,
                               double turn) { return gain.is_below(columns.at(z), bound, turn); },
               .progress = progress});
  }
  const ClosedLoop loop = coupled_loop(dynamics, hessian, blocks, lr);
  return edge_of(
      loop, {.at = [&](std::complex<double> z) { return loop.gain(z); }, .progress = progress});
}

}  // namespace

double heavy_ball_edge(int delay, double momentum) {
  constexpr double kPi = std::numbers::pi;
  if (delay == 0) return 2 * (1 + momentum);
  if (delay == 1) return 1 - momentum;
  if (momentum == 0) return 2 * std::sin(kPi / (4.0 * delay + 2));
  // The left side grows with θ, since the point (β, 0) is inside the circle.
  double low = 0, high = kPi;
  for (int i = 0; i < 60; ++i) {
    const double angle = (low + high) / 2;
    const double phase =
        (delay - 0.5) * angle + std::atan2(std::sin(angle), std::cos(angle) - momentum);
    (phase < kPi / 2 ? low : high) = angle;
  }
  return 2 * std::sin(low / 2) * std::sqrt(1 - 2 * momentum * std::cos(low) + momentum * momentum);
}

double edge_alone(const Dynamics& dynamics, int stage) {
  if (const auto edge = closed_form(dynamics, stage)) return *edge;
  return edge_of({dynamics.recurrence,
                  dynamics.rule,
                  {stage},
                  {{1}},
                  {.decay_lr = dynamics.lr, .discrepancy = dynamics.discrepancy}});
}

double largest_lr_alone(const Dynamics& dynamics, int stage, double curvature) {
  if (curvature <= 0) return std::numeric_limits<double>::infinity();
  const auto edge_with = [&](double decay_lr) {
    Dynamics decaying = dynamics;
    decaying.lr = decay_lr;
    return edge_alone(decaying, stage) / curvature;
  };
  return with_own_decay(dynamics.rule, edge_with, [&](double lr) {
    const LoopOptions options{.decay_lr = lr, .discrepancy = dynamics.discrepancy};
    return spectral_radius(
        ClosedLoop(dynamics.recurrence, dynamics.rule, {stage}, {{curvature}}, options).matrix(lr));
  });
}

double coupled_edge(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks,
                    const std::function<void()>& progress) {
  // Only products of curvatures with the learning rate count, so curvatures of around 1 will do.
  double unit = 0;
  for (const std::vector<double>& row : hessian)
    for (const double each : row) unit = std::max(unit, std::abs(each));
  if (unit == 0) unit = 1;
  Hessian scaled = hessian;
  for (std::vector<double>& row : scaled)
    for (double& each : row) each /= unit;
  const auto edge_with = [&](double decay_lr) {
    return edge_with_decay(dynamics, scaled, blocks, decay_lr, progress) / unit;
  };
  return with_own_decay(dynamics.rule, edge_with, [&](double lr) {
    if (progress) progress();
    return spectral_radius(dynamics, hessian, lr, blocks);
  });
}

int coupled_states(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks) {
  return coupled_loop(dynamics, hessian, blocks, 0).states();
}

double spectral_radius(const Dynamics& dynamics, const Hessian& hessian, double lr,
                       const Blocks& blocks) {
  return spectral_radius(coupled_loop(dynamics, hessian, blocks, lr).matrix(lr));
}

double effective_delay(const Recurrence& recurrence) {
  double squares = 0;
  for (const int stage : all_stages(recurrence)) {
    const double delay = delay_of(recurrence, stage).forward;
    squares += delay * delay;
  }
  return std::sqrt(squares / static_cast<double>(recurrence.stages.size()));
}

}  // namespace pipewright
