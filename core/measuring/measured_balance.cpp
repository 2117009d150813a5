// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_balance.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/measuring/head_count.h"
#include "core/nn/skips.h"
#include "core/schedule/predictions.h"
#include "core/schedule/schedule_size.h"
#include "core/stage/stage.h"

namespace pipewright {
namespace {

/// The profile that `pipeline.cut.profile` names, or the one beside the run folders.
Profile profile_for_cut(const Experiment& e, const LayoutRequest& request) {
  const std::filesystem::path& given = e.measured_balance->profile;
  if (given.empty()) return shared_profile(e, request, "pipeline.balance");
  return load_profile(given, e, profiled_device(e), e.where("pipeline.balance"));
}

/// The recorded cut of a run to be resumed; empty if its numbers of stages or layers differ.
std::vector<std::int64_t> recorded_cut(const Experiment& e, const std::filesystem::path& file) {
  std::vector<std::int64_t> cut;
  if (file.empty() || !std::filesystem::exists(file)) return cut;
  const Value run = load_yaml(file);
  const Value* const list = run.find_path("pipeline.balance");
  if (list == nullptr) return cut;
  std::int64_t layers = 0;
  for (const Value& stage : list->items) {
    if (!stage.is(Value::Kind::Integer) || stage.integer < 1) return {};
    cut.push_back(stage.integer);
    layers += stage.integer;
  }
  const bool fits = std::ssize(cut) == e.pipeline.stages && layers == std::ssize(e.layers);
  return fits ? cut : std::vector<std::int64_t>{};
}

std::vector<std::int64_t> cut_by_rules(const Experiment& e, const Profile& profile) {
  const int stages = e.pipeline.stages;
  try {
    return best_cut(profile, stage_memories(e, profile, stages), cut_rules(e, stages));
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), e.where("pipeline.balance"));
  }
}

/// Gives every process the cut of process 0.
void share(std::vector<std::int64_t>& cut, int stages, Team& team) {
  std::vector<double> numbers(static_cast<std::size_t>(stages), 0);
  if (team.first()) std::ranges::copy(cut, numbers.begin());
  team.sum(numbers);
  cut.assign(numbers.begin(), numbers.end());
}

}  // namespace

CutRules cut_rules(const Experiment& e, int stages) {
  const MeasuredBalance rule = e.measured_balance.value_or(MeasuredBalance{});
  return {.by = rule.by_memory ? CutRules::By::Memory : CutRules::By::Time,
          .stages = stages,
          .microbatches = e.pipeline.microbatches,
          .bandwidth = rule.bandwidth,
          .latency = rule.latency,
          .memory = static_cast<std::int64_t>(rule.memory)};
}

int optimizer_slots(const Experiment& e, const Schedule& schedule) {
  constexpr int kOfWeightNoise = 2;  // the factors of the weights, and the weights times them
  const Predictions predictions = predictions_of(schedule);
  return static_cast<int>(e.optimizer->slot_names(predictions.any).size()) +
         slots_of(e.gradient_rules) + (predictions.by_lookahead ? 1 : 0) +
         (predictions.by_drift ? 1 : 0) + e.perturbation.gradient_delay +
         (e.perturbation.weight_noise > 0 ? kOfWeightNoise : 0);
}

std::vector<std::int64_t> table_bytes(const Experiment& e) {
  std::vector<std::int64_t> bytes;
  if (e.optimizer->tables().empty()) return bytes;
  const auto each = static_cast<std::int64_t>(at::elementSize(e.train.precision.weights));
  for (const LayerPtr& layer : e.layers)
    bytes.push_back(each *
                    numbers_in_tables(*e.optimizer, flat_layout(parameter_shapes({layer}), each)));
  return bytes;
}

std::vector<std::int64_t> table_bytes_of_stages(const Experiment& e) {
  const std::vector<std::int64_t> layers = table_bytes(e);
  std::vector<std::int64_t> stages;
  if (layers.empty()) return stages;
  auto layer = layers.begin();
  for (const std::int64_t count : e.balance) {
    stages.push_back(std::accumulate(layer, layer + count, std::int64_t{0}));
    layer += count;
  }
  return stages;
}

StageMemories stage_memories(const Experiment& e, const Profile& profile, int stages) {
  PipelineShape shape = e.shape(2 * stages + 2);
  if (stages != shape.stages) {
    shape.placement.clear();
    shape.replica_placement.clear();
  }
  shape.stages = stages;
  check_schedule_size(shape, shape.minibatches);
  const Schedule schedule = e.schedule_in(shape);
  return {
      profile,        stage_moments(schedule), optimizer_slots(e, schedule), count_heads(e, stages),
      table_bytes(e), e.pipeline.slices};
}

void cut_by(Experiment& e, const Profile& profile) {
  if (!e.balance.empty()) return;
  e.balance = cut_by_rules(e, profile);
  e.skips = skips_between(e.layers, e.balance);
}

void settle_balance(Experiment& e, const LayoutRequest& request, Team& team) {
  if (!e.measured_balance || !e.balance.empty()) return;
  std::vector<std::int64_t> cut;
  if (team.first()) {
    cut = recorded_cut(e, request.recorded);
    if (cut.empty()) {
      cut = cut_by_rules(e, profile_for_cut(e, request));
      if (request.tell)
        request.tell(concat("pipeline.balance: ", e.measured_balance->by_memory ? "memory" : "time",
                            " gives ", list_text(cut)));
    }
  }
  share(cut, e.pipeline.stages, team);
  e.balance = cut;
  e.skips = skips_between(e.layers, e.balance);
  std::vector<Value> items;
  for (const std::int64_t layers : cut) items.push_back(Value::of(layers));
  *e.resolved.find("pipeline")->find("balance") = Value::sequence(std::move(items));
}

}  // namespace pipewright
