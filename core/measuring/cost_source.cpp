// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/cost_source.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/config/file_kind.h"
#include "core/cost/cost_table.h"
#include "core/cost/roofline.h"
#include "core/measuring/head_count.h"
#include "core/measuring/measured_balance.h"
#include "core/measuring/measured_device.h"
#include "core/measuring/profiling.h"
#include "core/measuring/weight_work.h"
#include "core/system/host_name.h"

namespace pipewright {
namespace {

Profile read_timed_profile(const std::filesystem::path& file) {
  Profile profile = load_profile(file);
  if (profile.timed) return profile;
  throw experiment_error(file,
                         "this profile was counted on the device meta and has no times; "
                         "`pipewright profile FILE --device cpu` or cuda measures them");
}

/// The factor that turns a profile's times into those of the hardware: "at speed 2".
std::string at_speed(const Hardware& machine) {
  const double speed = machine.devices.front().speed;
  const bool equal = std::ranges::all_of(
      machine.devices, [&](const Device& device) { return device.speed == speed; });
  return equal ? concat("at speed ", speed) : std::string("at the speeds of its file");
}

/// The origin of a profile in words: "profile.yaml, measured on cpu (an example), this machine, on
/// 2026-11-24", and the hardware it is used for.
std::string origin(const std::string& file, const Profile& profile, const Hardware& machine) {
  std::string text = concat(file, ", measured on ", device_in_words(profile));
  if (!profile.machine.empty())
    text += profile.machine == host_name() ? std::string(", this machine")
                                           : concat(", on the machine ", profile.machine);
  if (!profile.measured.empty()) text += concat(", on ", profile.measured);
  if (machine.device_name.empty()) return text;
  return concat(text, "; taken for ", machine.device_name, " ", at_speed(machine));
}

/// Throws if the devices do not compute in the experiment's format.
void check_format(const Experiment& experiment, const Hardware& hardware) {
  const std::string_view precision = experiment.train.precision.name;
  if (format_rate(hardware.rates, precision).flops > 0) return;
  std::vector<std::string> others;
  for (const char* format : {"float32", "float16", "bfloat16"})
    if (format_rate(hardware.rates, format).flops > 0) others.emplace_back(format);
  throw experiment_error(
      experiment.where("train.precision"), "train.precision is ", precision,
      ", in which the devices of ", hardware.name,
      hardware.device_name.empty() ? "" : concat(" (", hardware.device_name, ")"),
      " do not compute: devices.", precision, "_teraflops is none; expected ",
      join(others, " or "));
}

/// Gives heads the times that the profile has of them. False: it has none, though there are heads.
bool take_times(AuxiliaryHeads& heads, const Profile& profile,
                const std::vector<WeightMoves>& moves) {
  Profile measured{.layers = heads.behind};
  for (std::size_t i = 0; i < measured.layers.size(); ++i) {
    measured.layers[i].backward = profile.layers[i].head;
    measured.layers[i].update = profile.layers[i].head_update;
  }
  complete_weight_times(measured, moves);
  heads.behind = std::move(measured.layers);
  const auto timed = [](const LayerCost& head) { return head.backward > 0; };
  return heads.behind.empty() || std::ranges::any_of(heads.behind, timed);
}

/// What the optimizer moves of each head.
std::vector<WeightMoves> head_moves(const Experiment& experiment, const AuxiliaryHeads& heads) {
  std::vector<LayerPtr> layers;
  for (std::size_t i = 0; i < heads.behind.size(); ++i) layers.push_back(head_of(experiment, i));
  return weight_moves(experiment, layers);
}

/// Experiments whose layers cost the same have the same.
std::string counted_key(const Experiment& experiment) {
  const Profile wanted = described(experiment, at::kMeta);
  return concat(wanted.digest, " ", wanted.samples, " ", wanted.precision);
}

/// The counts of one slice of a micro-batch. Its passes read all weights and start
/// all kernels, so their times are more than such a part of the micro-batch's.
Profile counted_slice(Profile counted, int slices) {
  const auto divide = [&](std::int64_t& bytes) { bytes = (bytes + slices - 1) / slices; };
  divide(counted.input_bytes);
  for (LayerCost& layer : counted.layers) {
    layer.flops /= slices;
    divide(layer.output_bytes);
    divide(layer.activation_bytes);
    divide(layer.half_bytes);
    const std::int64_t gradient = layer.peak_adding_bytes - layer.peak_bytes;
    divide(layer.peak_bytes);
    layer.peak_adding_bytes = layer.peak_bytes + gradient;  // as large as weights are
  }
  return counted;
}

/// Turns the costs of a micro-batch into those of its slices, and says so.
void divide_among_slices(SourcedCosts& costs, int slices) {
  if (slices == 1) return;
  for (StageCost& stage : costs.stages) stage = cost_of_slice(stage, slices);
  costs.from += concat("; each of ", slices, " slices takes an equal part of a micro-batch's");
}

/// The profile with times as a device of the hardware's mean speed has them. Simulations scale the
/// costs of each stage by its own device; cuts and plans are for devices that are alike.
Profile at_mean_speed(Profile profile, const Hardware& hardware) {
  const double factor = hardware.mean_time_factor();
  for (LayerCost& layer : profile.layers)
    for (double* const seconds :
         {&layer.forward, &layer.backward, &layer.backward_input, &layer.backward_weight,
          &layer.update, &layer.new_version, &layer.prediction, &layer.fused_prediction,
          &layer.head, &layer.head_update})
      *seconds *= factor;
  return profile;
}

}  // namespace

std::string counted_from(const Hardware& hardware, std::string_view precision) {
  return concat("operations and bytes of the model at the rates of ", hardware.name, ": ",
                rate_text(hardware.rates, precision));
}

CostSource::CostSource(CostFiles files) : files_(std::move(files)) {
  if (!files_.table.empty() && !files_.profile.empty())
    throw Error(ErrorKind::Experiment, "--costs and --profile-file exclude each other");
  if (!files_.profile.empty()) profile_ = read_timed_profile(files_.profile);
  if (!files_.table.empty())
    table_ = load_file_of({.name = "table of costs", .keys = cost_table_keys()}, files_.table);
}

Roofline CostSource::roofline(const Experiment& experiment, const Hardware& hardware) const {
  if (!hardware.rates.known() && files_.experiment.empty())
    throw Error(ErrorKind::Experiment,
                concat("what the stages cost on the hardware '", hardware.name,
                       "' is not known; expected a description that says devices.teraflops and "
                       "devices.memory_gb_per_s"));
  if (!hardware.rates.known())
    throw Error(ErrorKind::Experiment,
                concat("what the stages cost is not known: `pipewright profile ", files_.experiment,
                       "` measures it and writes profile.yaml, which --profile-file profile.yaml "
                       "then takes; or write --costs, or give --hardware that says "
                       "devices.teraflops and devices.memory_gb_per_s"));
  check_format(experiment, hardware);
  return {hardware.rates, experiment.train.precision.name};
}

Profile CostSource::counted_on(const Experiment& experiment, const Hardware& hardware) {
  return at_mean_speed(roofline(experiment, hardware)
                           .timed(counted(experiment), weight_moves(experiment, experiment.layers)),
                       hardware);
}

SourcedCosts CostSource::of(const Experiment& experiment, const Hardware& hardware) {
  if (is_table()) return of_table(experiment);
  if (profile_) return of_profile(experiment, hardware);
  const Roofline roofline = this->roofline(experiment, hardware);
  const std::vector<WeightMoves> moves = weight_moves(experiment, experiment.layers);
  const Profile whole = counted(experiment);
  Layout layout = cut_by(experiment, at_mean_speed(roofline.timed(whole, moves), hardware));
  const Profile profile = roofline.timed(counted_slice(whole, experiment.pipeline.slices), moves);
  AuxiliaryHeads heads = counted_heads(experiment);
  const std::vector<WeightMoves> of_heads = head_moves(experiment, heads);
  for (std::size_t i = 0; i < heads.behind.size(); ++i)
    roofline.set_times(heads.behind[i], profile.layers[i].output_bytes, /*sends=*/true,
                       of_heads[i]);
  return {.stages = stage_costs(profile, layout.balance, heads),
          .from = counted_from(hardware, experiment.train.precision.name),
          .layout = std::move(layout)};
}

SourcedCosts CostSource::of_table(const Experiment& experiment) const {
  Problems problems;
  CostTable table = read_cost_table(table_, experiment.pipeline.stages, problems);
  problems.throw_if_any();
  SourcedCosts costs{.stages = std::move(table.stages),
                     .from = concat(files_.table.string(), ", a table"),
                     .layout = experiment.layout};
  if (table.samples > 0)
    costs.minibatch =
        table.samples * experiment.pipeline.microbatches * experiment.pipeline.replicas;
  divide_among_slices(costs, experiment.pipeline.slices);
  return costs;
}

SourcedCosts CostSource::of_profile(const Experiment& experiment, const Hardware& hardware) {
  const std::string file = files_.profile.string();
  if (!files_.other_device && !may_be_of(*profile_, hardware.device_name))
    throw experiment_error(
        file, "this profile was measured on ", device_in_words(*profile_), ", and the devices of ",
        hardware.name, " are ", hardware.device_name,
        "; measure there, or give --other-device to take its times all the same, ",
        at_speed(hardware), " (devices.speed)");
  std::string from = origin(file, *profile_, hardware);
  Profile profile = *profile_;
  profile.device =
      described(experiment, at::kCPU).device;  // any device fits: the hardware file says which
  if (const std::string why = misfit(profile, experiment, at::kCPU); !why.empty())
    throw experiment_error(file, "this profile does not fit: ", why,
                           "; `pipewright profile FILE` makes one");
  complete_weight_times(profile, weight_moves(experiment, experiment.layers));
  Layout layout = cut_by(experiment, at_mean_speed(profile, hardware));
  AuxiliaryHeads heads = counted_heads(experiment);
  take_peaks(heads, profile);
  if (!take_times(heads, profile, head_moves(experiment, heads)))
    from +=
        "; auxiliary heads take no time, for it has none: `pipewright profile` measures them with "
        "a scheme that has them";
  SourcedCosts costs{.stages = stage_costs(profile, layout.balance, heads),
                     .from = from,
                     .layout = std::move(layout)};
  divide_among_slices(costs, experiment.pipeline.slices);
  return costs;
}

Profile CostSource::counted(const Experiment& experiment) {
  const std::string key = counted_key(experiment);
  const Lock lock(mutex_);  // others wait for the first to count, instead of counting the same
  const auto known = counted_.find(key);
  if (known != counted_.end()) return known->second;
  return counted_.emplace(key, measure(experiment, {.device = at::kMeta})).first->second;
}

AuxiliaryHeads CostSource::counted_heads(const Experiment& experiment) {
  AuxiliaryHeads heads{.stages = experiment.scheme->auxiliary_sites(experiment.pipeline.stages),
                       .behind = {}};
  if (heads.stages.empty()) return heads;
  const std::string key = counted_key(experiment);
  const Lock lock(mutex_);
  auto known = heads_.find(key);
  if (known == heads_.end())
    known = heads_.emplace(key, count_heads(experiment, experiment.pipeline.stages).behind).first;
  heads.behind = known->second;
  return heads;
}

}  // namespace pipewright
