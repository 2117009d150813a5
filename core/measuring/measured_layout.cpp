// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_layout.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/as_size.h"
#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/experiment/grouped_parameters.h"
#include "core/measuring/measured_balance.h"
#include "core/measuring/profiling.h"
#include "core/nn/memory_format.h"
#include "core/runtime/devices/device.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"

namespace pipewright {

at::Device profiled_device(const Experiment& e) {
  return resolve_devices({e.pipeline.devices.front()}, e.where("pipeline.device")).front();
}

std::filesystem::path profile_path(const Experiment& e, at::Device device,
                                   const std::filesystem::path& folder) {
  return folder / concat("profile-", digest(profile_value(described(e, device))), ".yaml");
}

Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where) {
  Profile profile = load_profile(file);
  const bool bytes_will_do = experiment.measured_balance && experiment.measured_balance->by_memory;
  const bool counted = bytes_will_do && !profile.timed;
  if (const std::string why = misfit(profile, experiment, counted ? at::kMeta : device);
      !why.empty())
    throw experiment_error(where, "the profile ", file.string(), " does not fit: ", why,
                           "; make it anew with `pipewright profile`");
  return profile;
}

namespace {

constexpr const char *kFormat = "pipeline.memory_format", *kBalance = "pipeline.balance";

/// The configuration of a run to be resumed, if there is one.
std::optional<Value> recorded(const LayoutRequest& request) {
  if (request.recorded.empty() || !std::filesystem::exists(request.recorded)) return {};
  return load_yaml(request.recorded);
}

/// Seconds of a micro-batch's passes through all layers.
double seconds_of(const Profile& profile) {
  double seconds = 0;
  for (const LayerCost& layer : profile.layers) seconds += layer.forward + layer.backward;
  return seconds;
}

/// The profile at profile_path(), measured if it is not there. `option` is the one that needs it.
Profile shared_profile(const Experiment& e, const LayoutRequest& request,
                       const std::string& option) {
  const at::Device device = profiled_device(e);
  const std::filesystem::path folder = request.runs.empty() ? "." : request.runs;
  make_folders(folder);
  const FolderTurn turn(folder);  // one process measures; the others then find the file
  const auto file = profile_path(e, device, folder);
  if (std::filesystem::exists(file)) return load_profile(file, e, device, {});
  if (request.tell)
    request.tell(concat("measuring the ", counted(e.layers.size(), "layer"), " of ",
                        e.resolved.find_path("model.name")->text, " for ", option, ", into ",
                        file.string()));
  Profile profile = measure(e, {.device = device, .tell = request.tell});
  write_file(file, to_yaml(profile_value(profile)));
  return profile;
}

Layout in_format(const Experiment& e, bool channels_last) {
  Layout layout = e.layout;
  layout.channels_last = channels_last;
  return layout;
}

bool is_channels_last(const Experiment& e, const LayoutRequest& request) {
  if (!has_convolutions(e.layers)) return false;
  if (const auto run = recorded(request)) {  // one that recorded none had contiguous tensors
    const Value* const format = run->find_path(kFormat);
    return format != nullptr && format->text == memory_format_name(true);
  }
  const auto measured = [&](bool channels_last) {
    return seconds_of(shared_profile(e.with(in_format(e, channels_last)), request, kFormat));
  };
  const double contiguous = measured(false), channels_last = measured(true);
  const bool faster = channels_last < contiguous;
  if (request.tell)
    request.tell(concat(kFormat, ": auto gives ", memory_format_name(faster),
                        ": a micro-batch takes ", number_text(1e3 * channels_last),
                        " ms in channels_last and ", number_text(1e3 * contiguous),
                        " ms in contiguous"));
  return faster;
}

/// The recorded cut of a run to be resumed; empty if its numbers of stages or layers differ.
std::vector<std::int64_t> recorded_cut(const Experiment& e, const LayoutRequest& request) {
  const auto run = recorded(request);
  const Value* const list = run ? run->find_path(kBalance) : nullptr;
  if (list == nullptr) return {};
  std::vector<std::int64_t> cut;
  std::int64_t layers = 0;
  for (const Value& stage : list->items) {
    if (!stage.is(Value::Kind::Integer) || stage.integer < 1) return {};
    cut.push_back(stage.integer);
    layers += stage.integer;
  }
  const bool fits = std::ssize(cut) == e.pipeline.stages && layers == std::ssize(e.layers);
  return fits ? cut : std::vector<std::int64_t>{};
}

/// The profile that `pipeline.cut.profile` names, or the one beside the run folders.
Profile profile_for_cut(const Experiment& e, const LayoutRequest& request) {
  const std::filesystem::path& given = e.measured_balance->profile;
  if (given.empty()) return shared_profile(e, request, kBalance);
  return load_profile(given, e, profiled_device(e), e.where(kBalance));
}

/// The file of the cut that runs of a sweep share: those that agree in all that times of layers
/// depend on and in the rule, whatever their schemes and micro-batches.
std::filesystem::path shared_cut_file(const Experiment& e, const LayoutRequest& request) {
  Value key = Value::mapping();
  for (const char* const path :
       {"dataset", "model", "loss", "optimizer.name", "train.precision", "pipeline.stages",
        kBalance, "pipeline.cut", "pipeline.device", "pipeline.threads", "pipeline.memory_format",
        "pipeline.recompute"})
    if (const Value* const value = e.resolved.find_path(path)) key.at_or_add(path) = *value;
  for (const OptimizerGroup& group : e.optimizer->groups()) {
    const Value* const name = e.resolved.find_path(dotted(group.option) + ".name");
    key.at_or_add(group.option) = Value::of(concat(join(group.match, ", "), ": ", name->text));
  }
  return request.runs / concat("cut-", digest(key), ".yaml");
}

/// The cut of those runs: the one that is there, or `own`, which then is there.
std::vector<std::int64_t> shared_cut(const std::filesystem::path& file,
                                     std::vector<std::int64_t> own) {
  const FolderTurn turn(file.parent_path());
  if (!std::filesystem::exists(file)) {
    write_file(file, concat("balance: ", list_text(own), "\n"));
    return own;
  }
  std::vector<std::int64_t> cut;
  const Value read = load_yaml(file);
  if (const Value* const list = read.find("balance"))
    for (const Value& stage : list->items) cut.push_back(stage.integer);
  const bool fits = cut.size() == own.size() &&
                    std::ranges::all_of(cut, [](auto n) { return n > 0; }) &&
                    std::accumulate(cut.begin(), cut.end(), std::int64_t{0}) ==
                        std::accumulate(own.begin(), own.end(), std::int64_t{0});
  if (!fits) throw data_error(file, "is no cut of this model; remove it");
  return cut;
}

std::vector<std::int64_t> decided_cut(const Experiment& e, const LayoutRequest& request) {
  std::vector<std::int64_t> cut = recorded_cut(e, request);
  if (!cut.empty()) return cut;
  cut = cut_by(e, profile_for_cut(e, request)).balance;
  const MeasuredBalance& rule = *e.measured_balance;
  const bool shares = request.of_sweep && !rule.each && rule.memory == 0;
  if (shares) cut = shared_cut(shared_cut_file(e, request), cut);
  if (request.tell)
    request.tell(concat(kBalance, ": ", rule.by_memory ? "memory" : "time", " gives ",
                        list_text(cut), shares ? ", as for all runs of the sweep" : ""));
  return cut;
}

}  // namespace

Layout settle_memory_format(const Experiment& e, const LayoutRequest& request, Team& team) {
  if (e.layout.channels_last) return e.layout;
  double channels_last = team.first() && is_channels_last(e, request) ? 1 : 0;
  team.sum({&channels_last, 1});
  return in_format(e, channels_last == 1);
}

Layout settle_layout(const Experiment& given, const LayoutRequest& request, Team& team) {
  const Layout layout = settle_memory_format(given, request, team);
  if (!layout.balance.empty()) return layout;
  const Experiment e = given.with(layout);  // times depend on the format
  std::vector<double> cut(as_size(e.pipeline.stages), 0);
  if (team.first()) std::ranges::copy(decided_cut(e, request), cut.begin());
  team.sum(cut);
  return e.cut({cut.begin(), cut.end()});
}

std::string memory_format_remark(const Experiment& e) {
  const bool wanted = e.resolved.find_path(kFormat)->text == memory_format_name(true);
  if (!wanted || *e.layout.channels_last) return {};
  return concat(kFormat,
                " is channels_last, which changes nothing, because the model has no convolutions");
}

}  // namespace pipewright
