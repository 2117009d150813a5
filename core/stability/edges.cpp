// SPDX-License-Identifier: Apache-2.0
#include "core/stability/edges.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/stability/closed_forms.h"
#include "core/stability/crossing.h"

namespace pipewright {
namespace {

/// Whether the smallest steps go uphill: without decay, the eigenvalues that begin at z = 1 then
/// leave the circle at once. The gain has a simple pole there.
bool climbs(const ClosedLoop& loop) {
  if (loop.decays()) return false;
  constexpr double kBeyondOne = 1e-7, kRounding = 1e-4;
  const Eigenvalues slopes = eigenvalues(loop.gain(1 + kBeyondOne));
  double largest = 0, highest = 0;
  for (const std::complex<double>& each : slopes) {
    largest = std::max(largest, std::abs(each));
    highest = std::max(highest, each.real());
  }
  return highest > kRounding * largest;
}

double edge_of(const ClosedLoop& loop) {
  if (!loop.rests() || climbs(loop)) return 0;
  return first_crossing([&](std::complex<double> z) { return loop.gain(z); }, loop.longest_delay());
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

ClosedLoop coupled_loop(const Dynamics& dynamics, const Hessian& hessian, double lr) {
  return {dynamics.recurrence,
          dynamics.rule,
          all_stages(dynamics.recurrence),
          hessian,
          {.decay_lr = lr, .discrepancy = dynamics.discrepancy}};
}

}  // namespace

double edge_alone(const Dynamics& dynamics, int stage) {
  if (const auto edge = closed_form(dynamics, stage)) return *edge;
  return edge_of({dynamics.recurrence,
                  dynamics.rule,
                  {stage},
                  {{1}},
                  {.decay_lr = dynamics.lr, .discrepancy = dynamics.discrepancy}});
}

double coupled_edge(const Dynamics& dynamics, const Hessian& hessian) {
  // Only products of curvatures with the learning rate count, so curvatures of around 1 will do.
  double unit = 0;
  for (const std::vector<double>& row : hessian)
    for (const double each : row) unit = std::max(unit, std::abs(each));
  if (unit == 0) unit = 1;
  Hessian scaled = hessian;
  for (std::vector<double>& row : scaled)
    for (double& each : row) each /= unit;
  const auto edge_with = [&](double decay_lr) {
    return edge_of(coupled_loop(dynamics, scaled, decay_lr)) / unit;
  };
  const double undecayed = edge_with(0);
  if (dynamics.rule.l2 + dynamics.rule.decoupled == 0 || !std::isfinite(undecayed))
    return undecayed;
  // The weights decay with the very learning rate that is looked for: a fixed point. The edge
  // usually depends little on the decay, so each step comes nearer by orders of magnitude.
  constexpr int kSteps = 8, kHalvings = 50;
  constexpr double kAgreement = 1e-12;
  double lr = undecayed;
  for (int i = 0; i < kSteps; ++i) {
    const double next = edge_with(lr);
    if (std::abs(next - lr) <= kAgreement * lr) return next;
    lr = next;
  }
  double low = 0, high = undecayed;
  while (edge_with(high) > high) high *= 2;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::midpoint(low, high);
    (edge_with(middle) > middle ? low : high) = middle;
  }
  return low;
}

int coupled_states(const Dynamics& dynamics, const Hessian& hessian) {
  return coupled_loop(dynamics, hessian, 0).states();
}

double spectral_radius(const Dynamics& dynamics, const Hessian& hessian, double lr) {
  return spectral_radius(coupled_loop(dynamics, hessian, lr).matrix(lr));
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
