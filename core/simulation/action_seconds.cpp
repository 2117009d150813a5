// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/action_seconds.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/random.h"

namespace pipewright {

ActionSeconds::ActionSeconds(const ProvedSchedule& proved, std::span<const StageCost> costs,
                             const Hardware& hardware)
    : schedule_(proved.schedule),
      slots_(proved.index.slots()),
      costs_(costs),
      versions_(proved.versions),
      hardware_(hardware),
      seconds_(costs.size()) {
  for (std::size_t stage = 0; stage < costs_.size(); ++stage) {
    const StageCost& cost = costs_[stage];
    for (std::size_t kind = 0; kind < kKinds; ++kind)
      seconds_[stage][kind] = seconds_of(cost, static_cast<ActionKind>(kind));
    versions_cost_.push_back(cost.new_version > 0 || cost.prediction > 0 ||
                             cost.fused_prediction.value_or(0) > 0);
  }
  for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker)
    factors_.push_back(hardware_.time_factor(static_cast<int>(worker)));
}

double ActionSeconds::of_action(int worker, std::size_t position) const {
  const Action& action = schedule_.workers[as_size(worker)][position];
  double seconds = of_kind(action.stage, action.kind);
  if (is_backward(action.kind) && !sends_gradient(action))
    seconds -= action.kind == ActionKind::Backward
                   ? costs_[as_size(action.stage)].backward_sent
                   : costs_[as_size(action.stage)].backward_input_sent;
  return on_device(worker, position, seconds + of_versions(worker, position));
}

double ActionSeconds::of_pair(int worker, std::size_t position) const {
  const auto& actions = schedule_.workers[as_size(worker)];
  const StageCost &forward = costs_[as_size(actions[position].stage)],
                  &backward = costs_[as_size(actions[position + 1].stage)];
  if (forward.fused_pair)
    return on_device(worker, position,
                     *forward.fused_pair + forward.coding_forward + backward.coding_backward +
                         of_versions(worker, position) + of_versions(worker, position + 1));
  const double first = of_action(worker, position);
  const double second = of_action(worker, position + 1);
  return first + second - hardware_.overlap * std::min(first, second);
}

double ActionSeconds::of_reduction(int worker, int stage) const {
  return of_kind(stage, ActionKind::Reduce) * factors_[as_size(worker)];
}

bool ActionSeconds::sends_gradient(const Action& action) const {
  return action.stage > 0 && slots_.backward(action, action.stage - 1) != PassSlots::kNone;
}

double ActionSeconds::of_kind(int stage, ActionKind kind) const {
  return seconds_[as_size(stage)][static_cast<std::size_t>(kind)];
}

/// So many seconds of the profile in seconds of the worker's device.
double ActionSeconds::on_device(int worker, std::size_t position, double seconds) const {
  seconds *= factors_[as_size(worker)];
  return hardware_.jitter > 0 ? seconds * jitter(worker, position) : seconds;
}

/// Seconds that an action spends on versions of the weights besides its own work.
double ActionSeconds::of_versions(int worker, std::size_t position) const {
  const auto& actions = schedule_.workers[as_size(worker)];
  const std::size_t stage = as_size(actions[position].stage);
  if (!versions_cost_[stage]) return 0;
  const std::vector<ActionWeights>& weights = versions_.workers[as_size(worker)];
  const StageCost& cost = costs_[stage];
  if (actions[position].kind == ActionKind::Update)
    return (weights[position].in_place ? 0 : cost.new_version) +
           (update_predicts(worker, position) ? *cost.fused_prediction : 0);
  if (cost.prediction == 0) return 0;
  const bool fused = position > 0 && update_predicts(worker, position - 1);
  return weights[position].makes && !fused ? cost.prediction : 0;
}

/// Whether the action is an update that makes the prediction of the pass directly behind it.
bool ActionSeconds::update_predicts(int worker, std::size_t position) const {
  const auto& actions = schedule_.workers[as_size(worker)];
  if (position + 1 >= actions.size()) return false;
  const Action &update = actions[position], &pass = actions[position + 1];
  return costs_[as_size(update.stage)].fused_prediction.has_value() &&
         update.kind == ActionKind::Update && update.stage == pass.stage &&
         update.replica == pass.replica && versions_.workers[as_size(worker)][position + 1].makes;
}

/// A log-normal factor with mean 1.
double ActionSeconds::jitter(int worker, std::size_t position) const {
  const double variance = std::log1p(hardware_.jitter * hardware_.jitter);
  const RandomStream stream(hardware_.seed, "simulate.jitter", static_cast<std::uint64_t>(worker));
  return std::exp(std::sqrt(variance) * stream.normal(position) - variance / 2);
}

}  // namespace pipewright
