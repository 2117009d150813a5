// SPDX-License-Identifier: Apache-2.0
#include "core/profiling/measured_balance.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/profiling/profiling.h"
#include "core/runtime/devices/device.h"
#include "core/schedule/predictions.h"
#include "core/schedule/schedule_size.h"
#include "core/stage/skips.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"

namespace pipewright {
namespace {

at::Device profiled_device(const Experiment& e) {
  return resolve_devices({e.pipeline.devices.front()}, e.where("pipeline.device")).front();
}

Profile shared_profile(const Experiment& e, const BalanceRequest& request) {
  const at::Device device = profiled_device(e);
  const std::filesystem::path& given = e.measured_balance->profile;
  if (!given.empty()) return load_profile(given, e, device, e.where("pipeline.balance"));
  const std::filesystem::path folder = request.runs.empty() ? "." : request.runs;
  make_folders(folder);
  const FolderTurn turn(folder);  // one process measures; the others then find the file
  const auto file = profile_path(e, device, folder);
  if (std::filesystem::exists(file)) return load_profile(file, e, device, {});
  if (request.tell)
    request.tell(concat("measuring the ", counted(e.layers.size(), "layer"), " of ",
                        e.resolved.find_path("model.name")->text, " for pipeline.balance, into ",
                        file.string()));
  Profile profile = measure(e, {.device = device});
  write_file(file, to_yaml(profile_value(profile)));
  return profile;
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

std::filesystem::path profile_path(const Experiment& e, at::Device device,
                                   const std::filesystem::path& folder) {
  Profile of = described(e, device);
  Value what = profile_value(of);
  return folder / concat("profile-", digest(what), ".yaml");
}

Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where) {
  Profile profile = read_profile(load_yaml(file));
  const bool bytes_will_do = experiment.measured_balance && experiment.measured_balance->by_memory;
  const bool counted = bytes_will_do && !profile.timed;
  if (const std::string why = misfit(profile, experiment, counted ? at::kMeta : device);
      !why.empty())
    throw Error(ErrorKind::Experiment,
                concat("the profile ", file.string(), " does not fit: ", why,
                       "; make it anew with `pipewright profile`"),
                where);
  return profile;
}

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
  const Predictions predictions = predictions_of(schedule);
  return static_cast<int>(e.optimizer->slot_names(predictions.any).size()) +
         (predictions.by_lookahead ? 1 : 0) + (predictions.by_drift ? 1 : 0);
}

StageMemories stage_memories(const Experiment& e, const Profile& profile, int stages) {
  PipelineShape shape = e.shape(2 * stages + 2);
  if (stages != shape.stages) shape.placement.clear();
  shape.stages = stages;
  check_schedule_size(shape, shape.minibatches);
  const Schedule schedule = with_recomputation(e.scheme->schedule(shape), e.pipeline.recompute);
  return {profile, stage_moments(schedule), optimizer_slots(e, schedule)};
}

void cut_by(Experiment& e, const Profile& profile) {
  if (!e.balance.empty()) return;
  e.balance = cut_by_rules(e, profile);
  e.skips = skips_between(e.layers, e.balance);
}

std::optional<Profile> settle_balance(Experiment& e, const BalanceRequest& request, Team& team) {
  if (!e.measured_balance || !e.balance.empty()) return {};
  std::optional<Profile> profile;
  std::vector<std::int64_t> cut;
  if (team.first()) {
    cut = recorded_cut(e, request.recorded);
    if (cut.empty()) {
      profile = shared_profile(e, request);
      cut = cut_by_rules(e, *profile);
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
  return profile;
}

}  // namespace pipewright
