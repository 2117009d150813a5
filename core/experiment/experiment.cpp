// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"

#include <algorithm>

#include "core/schedule/offload.h"
#include "core/schedule/schedule_size.h"
#include "core/schedule/versions.h"

namespace pipewright {

Place place_in(const Value& document, std::string dotted) {
  for (;;) {
    if (const Value* value = document.find_path(dotted)) return value->place;
    const std::size_t dot = dotted.rfind('.');
    if (dot == std::string::npos) return document.place;
    dotted.resize(dot);
  }
}

double Experiment::learning_rate(std::int64_t step, std::int64_t minibatches_per_epoch,
                                 std::int64_t epochs) const {
  const std::int64_t all = epochs * minibatches_per_epoch;
  step = std::clamp<std::int64_t>(step, 0, std::max<std::int64_t>(0, all - 1));
  if (lr_schedule.per_step()) return lr_schedule.at(optimizer->lr(), step, all);
  return lr_schedule.at(optimizer->lr(), step / minibatches_per_epoch, epochs);
}

PipelineShape Experiment::shape(int minibatches, int first_minibatch) const {
  return {.stages = pipeline.stages,
          .replicas = pipeline.replicas,
          .microbatches = pipeline.microbatches * pipeline.slices,
          .slices = pipeline.slices,
          .minibatches = minibatches,
          .first_minibatch = first_minibatch,
          .placement = pipeline.placement,
          .replica_placement = pipeline.replica_placement,
          .skips = skips};
}

Schedule Experiment::schedule_in(const PipelineShape& wanted) const {
  Schedule schedule = with_recomputation(scheme->schedule(wanted), pipeline.recompute);
  if (pipeline.offload) schedule = with_offload(std::move(schedule), pipeline.fetch_ahead);
  if (!wanted.training) return schedule;
  schedule.gradient_delay = perturbation.gradient_delay;
  for (const NamedGradientRule& each : gradient_rules) {
    const GradientRule& rule = *each.rule;
    schedule.updates_compare |= rule.compares_versions();
    schedule.updates_meet |= rule.over_model();
    if (rule.changes_lr())
      schedule = with_rates_by_staleness(std::move(schedule),
                                         [&](int staleness) { return rule.lr_factor(staleness); });
  }
  return schedule;
}

Schedule Experiment::schedule(int minibatches, int first_minibatch) const {
  const PipelineShape wanted = shape(minibatches, first_minibatch);
  check_schedule_size(wanted, minibatches);
  return schedule_in(wanted);
}

std::string Experiment::where(const std::string& dotted) const {
  return place_in(given, dotted).text();
}

}  // namespace pipewright
