// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/dynamics.h"

#include "core/base/text.h"
#include "core/optim/gradient_rules/gradient_rule.h"

namespace pipewright {
namespace {

Recurrence recurrence_of(const Experiment& experiment) {
  constexpr int kLate = 1'000'000'000;  // a mini-batch after all warm-ups
  const auto make = [&](int minibatches) { return experiment.schedule(minibatches, kLate); };
  const Recurrence recurrence =
      steady_recurrence(make, {.sum_gradients = experiment.train.sum_gradients,
                               .periodic = experiment.scheme->repeats() || is_periodic(make)});
  return with_delayed_gradients(recurrence, experiment.perturbation.gradient_delay);
}

/// Whether some parameters decay and others do not, in a rule that has the decay.
bool decays_unevenly(const Experiment& experiment, const LinearRule& rule) {
  const Value* const spared = experiment.resolved.find_path("optimizer.no_decay");
  return spared != nullptr && !spared->items.empty() && (rule.l2 != 0 || rule.decoupled != 0);
}

}  // namespace

std::vector<StageDelay> steady_delays(const Experiment& experiment) {
  const Recurrence recurrence = recurrence_of(experiment);
  std::vector<StageDelay> delays;
  for (int stage = 0; stage < static_cast<int>(recurrence.stages.size()); ++stage)
    delays.push_back(delay_of(recurrence, stage));
  return delays;
}

std::optional<Dynamics> dynamics_of(const Experiment& experiment) {
  const std::optional<LinearRule> rule = experiment.optimizer->linear();
  if (!rule || !experiment.stage_optimizers.empty() || decays_unevenly(experiment, *rule))
    return {};
  return Dynamics{
      .recurrence = recurrence_of(experiment), .rule = *rule, .lr = experiment.optimizer->lr()};
}

std::vector<std::string> rules_beyond_edges(const Experiment& experiment) {
  if (!experiment.optimizer->linear()) return {};
  std::vector<std::string> names;
  for (const NamedGradientRule& each : experiment.gradient_rules)
    if (!each.rule->changes_lr()) names.push_back(each.name);
  return names;
}

std::string edges_remark(const std::vector<std::string>& rules) {
  if (rules.empty()) return {};
  return concat("edges of stability are those of a training without the gradient rule",
                rules.size() > 1 ? "s " : " ", join(rules, ", "));
}

std::string no_recurrence(const Experiment& experiment) {
  if (!experiment.stage_optimizers.empty())
    return "edges are computed for one momentum of all stages; expected "
           "optimizer.momentum_by_delay: none";
  if (const auto rule = experiment.optimizer->linear(); rule && decays_unevenly(experiment, *rule))
    return "edges are computed for one decay of all weights; expected optimizer.no_decay: []";
  return concat(
      "the optimizer ", experiment.resolved.find_path("optimizer.name")->text,
      " is no linear recurrence, so it has no edge; expected sgd, adam, adamw, nadamw or rmsprop");
}

}  // namespace pipewright
