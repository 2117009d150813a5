// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"

#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/nn/layers/subspace.h"
#include "core/nn/memory_format.h"
#include "core/nn/skips.h"
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

std::string TrainOptions::length_text() const {
  return steps > 0 ? counted(steps, "step") : counted(epochs, "epoch");
}

Holdings Experiment::holdings(const Schedule& schedule) const {
  const PipelineShape& shape = schedule.shape;
  return {.optimizer = *optimizer,
          .gradient_rules = gradient_rules,
          .disturbed = perturbation.slots(),
          .disturbed_narrow = perturbation.narrow_slots(),
          .precision = train.precision,
          .predictions = predictions_of(schedule),
          .sums = shape.microbatches > 1 || shape.slices > 1 || shape.replicas > 1 ||
                  !schedule.auxiliary.empty() || !gradient_rules.empty() ||
                  perturbation.gradient_delay > 0};
}

std::int64_t Experiment::fixed_bytes() const {
  const auto* const fixed = dynamic_cast<const FixedNumbers*>(model.get());
  return fixed == nullptr ? 0
                          : fixed->fixed_numbers() *
                                static_cast<std::int64_t>(c10::elementSize(train.precision.values));
}

double Experiment::learning_rate(std::int64_t step, std::int64_t minibatches_per_epoch,
                                 std::int64_t minibatches) const {
  step = std::clamp<std::int64_t>(step, 0, std::max<std::int64_t>(0, minibatches - 1));
  if (lr_schedule.per_step()) return lr_schedule.at(optimizer->lr(), step, minibatches);
  const std::int64_t epochs = (minibatches + minibatches_per_epoch - 1) / minibatches_per_epoch;
  return lr_schedule.at(optimizer->lr(), step / minibatches_per_epoch, epochs);
}

std::vector<std::vector<LayerPtr>> Experiment::stage_layers() const {
  std::vector<std::vector<LayerPtr>> stages;
  auto next = layers.begin();
  for (const std::int64_t count : layout.balance) {
    stages.emplace_back(next, next + count);
    next += count;
  }
  return stages;
}

std::vector<std::vector<LayerPtr>> Experiment::stage_layers_and_heads() const {
  std::vector<std::vector<LayerPtr>> stages = stage_layers();
  if (stages.empty()) return stages;
  for (const int stage : scheme->auxiliary_sites(pipeline.stages))
    if (LayerPtr head = head_behind(stage)) {
      head->set_name(concat("heads.", stage));
      stages[static_cast<std::size_t>(stage)].push_back(std::move(head));
    }
  return stages;
}

LayerPtr Experiment::head_behind(int stage) const {
  const auto begin = layout.balance.begin();
  return model->head(std::accumulate(begin, begin + stage + 1, std::size_t{0}) - 1);
}

Layout Experiment::cut(std::vector<std::int64_t> balance) const {
  Layout cut = layout;
  const auto number_bytes = static_cast<std::int64_t>(at::elementSize(train.precision.values));
  cut.skips = skips_between(layers, balance, number_bytes);
  cut.tied = tied_copies(layers, balance, number_bytes);
  cut.balance = std::move(balance);
  return cut;
}

Experiment Experiment::with(Layout settled) const {
  Experiment e = *this;
  Value& pipeline_section = *e.resolved.find("pipeline");
  if (layout.balance.empty() && !settled.balance.empty()) {
    Value& list = *pipeline_section.find("balance") = Value::sequence();
    for (const std::int64_t held : settled.balance) list.items.push_back(Value::of(held));
  }
  if (!layout.channels_last && settled.channels_last)
    *pipeline_section.find("memory_format") = Value::of(memory_format_name(*settled.channels_last));
  e.layout = std::move(settled);
  return e;
}

PipelineShape Experiment::shape(int minibatches, int first_minibatch) const {
  return {.stages = pipeline.stages,
          .replicas = pipeline.replicas,
          .microbatches = pipeline.passes(),
          .slices = pipeline.slices,
          .minibatches = minibatches,
          .first_minibatch = first_minibatch,
          .placement = layout.placement,
          .replica_placement = layout.replica_placement,
          .skips = layout.skips,
          .tied = layout.tied};
}

Schedule Experiment::schedule_without_rules(const PipelineShape& wanted) const {
  Schedule schedule = scheme->schedule(wanted);
  for (const ScheduleRewrite& rewrite : pipeline.rewrites)
    schedule = rewrite.apply(std::move(schedule));
  return schedule;
}

Schedule Experiment::schedule_in(const PipelineShape& wanted,
                                 std::vector<std::vector<int>> waiting) const {
  Schedule schedule = schedule_without_rules(wanted);
  if (!wanted.training) return schedule;
  schedule.gradient_delay = perturbation.gradient_delay;
  schedule.waiting = std::move(waiting);
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

Schedule Experiment::schedule(int minibatches, int first_minibatch,
                              std::vector<std::vector<int>> waiting) const {
  const PipelineShape wanted = shape(minibatches, first_minibatch);
  check_schedule_size(wanted, minibatches);
  return schedule_in(wanted, std::move(waiting));
}

std::string Experiment::where(const std::string& dotted) const {
  return place_in(given, dotted).text();
}

}  // namespace pipewright
