// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/dynamics.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/experiment/grouped_parameters.h"
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/optim/optimizer_groups.h"
#include "core/stability/stability_report.h"

namespace pipewright {
namespace {

/// SteadyStateOptions::shares of a whole mini-batch.
std::vector<double> shares_of(const Experiment& experiment) {
  const PipelineOptions& p = experiment.pipeline;
  const std::int64_t all = experiment.loader.batch_size;
  std::vector<double> shares;
  for (int replica = 0; replica < p.replicas; ++replica) {
    const std::int64_t own = slice_of(all, p.replicas, replica).size;
    for (int part = 0; part < p.microbatches; ++part) {
      const std::int64_t counted =
          experiment.train.sum_gradients
              ? own
              : microbatch_of(own, p.microbatches, part, p.microbatch_sizes).size;
      shares.push_back(static_cast<double>(counted) / static_cast<double>(all));
    }
  }
  return shares;
}

Recurrence recurrence_of(const Experiment& experiment) {
  constexpr int kLate = 1'000'000'000;  // a mini-batch after all warm-ups
  const auto make = [&](int minibatches) { return experiment.schedule(minibatches, kLate); };
  const Recurrence recurrence =
      steady_recurrence(make, {.shares = shares_of(experiment),
                               .periodic = experiment.scheme->repeats() || is_periodic(make)});
  return with_delayed_gradients(recurrence, experiment.perturbation.gradient_delay);
}

/// Whether some parameters of a group decay and others do not, in a rule that has the decay.
bool decays_unevenly(const Experiment& experiment, const OptimizerGroup& member) {
  const Value* const spared = experiment.resolved.find_path(dotted(member.option) + ".no_decay");
  const std::optional<LinearRule> rule = member.optimizer->linear();
  return rule && spared != nullptr && !spared->items.empty() &&
         (rule->l2 != 0 || rule->decoupled != 0);
}

double smallest_edge(const Dynamics& dynamics) {
  const StabilityReport report = stability_report(dynamics);
  return report.stages[as_size(tightest_stage(report))].edge;
}

}  // namespace

std::vector<StageDelay> steady_delays(const Experiment& experiment) {
  const Recurrence recurrence = recurrence_of(experiment);
  std::vector<StageDelay> delays;
  for (int stage = 0; stage < static_cast<int>(recurrence.stages.size()); ++stage)
    delays.push_back(delay_of(recurrence, stage));
  return delays;
}

std::vector<GroupDynamics> dynamics_of_groups(const Experiment& experiment) {
  std::vector<GroupDynamics> all;
  if (!experiment.stage_optimizers.empty()) return all;
  for (const OptimizerGroup& member : members_of(experiment.optimizer)) {
    const std::optional<LinearRule> rule = member.optimizer->linear();
    if (!rule || decays_unevenly(experiment, member)) continue;
    all.push_back(
        {member.option,
         {.recurrence = all.empty() ? recurrence_of(experiment) : all.front().dynamics.recurrence,
          .rule = *rule,
          .lr = member.optimizer->lr()}});
  }
  if (all.size() > 1)
    std::ranges::stable_sort(
        all, {}, [](const GroupDynamics& each) { return smallest_edge(each.dynamics); });
  return all;
}

std::optional<Dynamics> dynamics_of(const Experiment& experiment) {
  std::vector<GroupDynamics> all = dynamics_of_groups(experiment);
  return all.empty() ? std::nullopt : std::optional(std::move(all.front().dynamics));
}

std::vector<std::string> rules_beyond_edges(const Experiment& experiment) {
  if (std::ranges::none_of(members_of(experiment.optimizer), [](const OptimizerGroup& member) {
        return member.optimizer->linear().has_value();
      }))
    return {};
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
  for (const OptimizerGroup& member : members_of(experiment.optimizer))
    if (decays_unevenly(experiment, member))
      return concat("edges are computed for one decay of all weights; expected ", member.option,
                    ".no_decay: []");
  if (!experiment.optimizer->groups().empty())
    return "no group of the optimizer is a linear recurrence, so none has an edge; expected sgd, "
           "adam, adamw, nadamw or rmsprop";
  return concat(
      "the optimizer ", experiment.resolved.find_path("optimizer.name")->text,
      " is no linear recurrence, so it has no edge; expected sgd, adam, adamw, nadamw or rmsprop");
}

}  // namespace pipewright
