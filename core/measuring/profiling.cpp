// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/profiling.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/identity.h"
#include "core/measuring/head_count.h"
#include "core/measuring/layer_count.h"
#include "core/measuring/layer_measurement.h"
#include "core/measuring/made_up_batch.h"
#include "core/measuring/measured_device.h"
#include "core/measuring/weight_work.h"
#include "core/nn/memory_format.h"
#include "core/runtime/batches.h"
#include "core/runtime/devices/intra_op_threads.h"
#include "core/system/file.h"
#include "core/system/foreign_error.h"
#include "core/system/host_name.h"
#include "core/system/utc.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

void count_all(Profile& profile, const Experiment& e) {
  const at::NoGradGuard no_grad;
  const auto meta = at::TensorOptions(e.train.precision.values).device(at::kMeta);
  Tensors x = made_up_batch(*e.model, profile.samples, meta).x;
  profile.input_bytes = boundary_bytes(x);
  LentTensors lent;
  for (const LayerPtr& layer : e.layers) {
    lent.give(*layer, x);
    profile.layers.push_back(count_layer(*layer, x, e));
    lent.take(*layer, x);
  }
}

/// Measures the auxiliary head behind layer i, if the model has one, on what that layer passes on.
void measure_head(LayerCost& cost, const Experiment& e, std::size_t i,
                  const ProfileSettings& settings, const Boundary& inputs, const Boundary& outputs,
                  const at::Tensor& targets, double seconds) {
  const LayerPtr head = head_of(e, i);
  if (!head) return;
  const Boundary first{.tensors = {outputs.tensors[0]}, .memory = {outputs.memory[0]}};
  LayerMeasurement measurement(e, {.layer = head, .index = i + 1, .last = true}, first, targets,
                               settings.device);
  LayerCost times;
  measurement.measure_times(settings.repetitions, seconds).give(times);
  cost.head = times.forward + times.backward;
  cost.head_update = times.update;
  const LayerCost memory = head_memory(e, i, inputs.tensors, outputs.tensors[0], targets);
  cost.head_peak = memory.peak_bytes;
  cost.head_peak_adding = memory.peak_adding_bytes;
}

/// Measures layer i, its times into `times`, and returns what it passes on.
Boundary measure_layer(Profile& profile, const Experiment& e, std::size_t i,
                       const ProfileSettings& settings, const Boundary& before,
                       const at::Tensor& targets, LayerTimes& times) {
  constexpr double kWeights = 0.1;  // the part of the time for what is done with weights alone
  const bool heads = profile.timed && !e.scheme->auxiliary_sites(e.pipeline.stages).empty();
  const bool last = i + 1 == e.layers.size();
  const double seconds =
      settings.seconds / static_cast<double>(heads ? 2 * e.layers.size() - 1 : e.layers.size());
  LayerMeasurement measurement(e, {.layer = e.layers[i], .index = i, .last = last}, before, targets,
                               settings.device);
  if (profile.timed) {
    times = measurement.measure_times(settings.repetitions, (1 - kWeights) * seconds);
    if (profile.layers[i].copy_bytes == 0)  // otherwise it follows from the update's time
      measure_weight_times(profile.layers[i], *e.optimizer, *e.layers[i],
                           empty_parameters(*e.layers[i], e.train.precision, settings.device),
                           settings.repetitions, kWeights * seconds);
  }
  measurement.measure_peak(profile.layers[i]);
  Boundary outputs = measurement.measure_kept(profile.layers);
  if (heads && !last)
    measure_head(profile.layers[i], e, i, settings, before, outputs, targets, seconds);
  return outputs;
}

void measure_all(Profile& profile, const Experiment& e, const ProfileSettings& settings) {
  const IntraOpThreads threads(e.pipeline.threads);
  const Batch batch = made_up_batch(
      e, profile.samples, at::TensorOptions(e.train.precision.values).device(settings.device));
  Boundary boundary;
  for (const at::Tensor& x : batch.x) {
    boundary.tensors.push_back(laid_out(x, e.layout.channels_last.value_or(false)));
    boundary.memory.push_back(std::make_shared<Boundary::Memory>(
        Boundary::Memory{.bytes = static_cast<std::int64_t>(x.nbytes())}));
  }
  profile.timed = !settings.device.is_meta();
  std::vector<LayerTimes> times(e.layers.size());
  LentTensors lent;
  LentStack<std::shared_ptr<Boundary::Memory>> lent_memory;
  for (std::size_t i = 0; i < e.layers.size(); ++i) {
    if (settings.on_layer) settings.on_layer(i);
    try {
      lent.give(*e.layers[i], boundary.tensors);
      lent_memory.give(*e.layers[i], boundary.memory);
      boundary = measure_layer(profile, e, i, settings, boundary, batch.y, times[i]);
      lent.take(*e.layers[i], boundary.tensors);
      lent_memory.take(*e.layers[i], boundary.memory);
    } catch (const std::exception& error) {
      const bool ours = dynamic_cast<const Error*>(&error) != nullptr || machine_error(error);
      if (ours) throw;
      throw Error(ErrorKind::Worker, concat("layer ", i, ", '", e.layers[i]->name(),
                                            "', cannot be trained: ", first_line(error)));
    }
  }
  if (!profile.timed) return;
  constexpr double kMuch = 0.25;
  const double scatter = pool_equal_layers(profile, times);
  if (scatter > kMuch && settings.tell)
    settings.tell(
        concat("the measured times scatter: the middle half of the repetitions of a layer spans ",
               std::lround(100 * scatter),
               " % of their median, so that a cut by them is uncertain; measure again where "
               "nothing else runs"));
}

/// Removes options that change no cost.
Value without(Value part, std::initializer_list<const char*> names) {
  for (const char* name : names)
    std::erase_if(part.fields, [&](const auto& field) { return field.first == name; });
  return part;
}

/// A digest of what a model reads besides its options and weights: the graph of an imported module,
/// which stands in JSON files of a folder. Empty for other models.
std::string graph_digest(const Experiment& e) {
  std::map<std::string, std::string> files;
  for (const std::string& path : path_options(e.resolved)) {
    const Value* const given = e.resolved.find_path(path);
    std::error_code none;
    if (!path.starts_with("model.") || given == nullptr || given->text.empty() ||
        !std::filesystem::is_directory(given->text, none))
      continue;
    for (const auto& entry : std::filesystem::directory_iterator(given->text))
      if (entry.path().extension() == ".json")
        files[entry.path().filename()] = sha256(read_file(entry.path()));
  }
  std::string text;
  for (const auto& [name, checksum] : files) text += concat(name, " ", checksum, "\n");
  return text.empty() ? text : sha256(text);
}

}  // namespace

Profile described(const Experiment& e, at::Device device) {
  const auto& p = e.pipeline;
  const Value active = without_idle_options(e.resolved);
  Value costs = Value::mapping();
  Value& model = costs.at_or_add("model") =
      without(*active.find("model"), {"weights", "weights_format", "fresh"});
  const Value* const tie = model.find("tie");
  if (tie != nullptr && tie->text != "same" && e.resolved.find_path("model.name")->text != "graph")
    model = without(std::move(model), {"tie"});
  if (const std::string graph = graph_digest(e); !graph.empty())
    costs.at_or_add("graph") = Value::of(graph);
  costs.at_or_add("loss") = *active.find("loss");
  Value optimizer = without(*active.find("optimizer"), {"lr"});
  if (Value* const groups = optimizer.find("groups"))
    for (Value& group : groups->items) group = without(group, {"lr"});
  costs.at_or_add("optimizer") = std::move(optimizer);
  return {.model = e.resolved.find_path("model.name")->text,
          .digest = digest(costs),
          .device = c10::DeviceTypeName(device.type(), /*lower_case=*/true),
          .precision = std::string(e.train.precision.name),
          .memory_format =
              memory_format_name(e.layout.channels_last.value_or(false) && !device.is_meta()),
          .samples =
              slice_of(slice_of(e.loader.batch_size, p.replicas, 0).size, p.microbatches, 0).size,
          .threads = p.threads};
}

Profile measure(const Experiment& experiment, const ProfileSettings& settings) {
  Profile profile = described(experiment, settings.device);
  count_all(profile, experiment);
  measure_all(profile, experiment, settings);
  if (profile.timed) {
    profile.device_model = device_model(settings.device);
    profile.machine = host_name();
    profile.measured = utc_now("%Y-%m-%d");
  }
  return profile;
}

std::string misfit(const Profile& profile, const Experiment& experiment, at::Device device) {
  const Profile wanted = described(experiment, device);
  if (profile.model != wanted.model)
    return concat("it is of the model ", profile.model, ", this experiment has ", wanted.model);
  if (profile.samples != wanted.samples)
    return concat("it is of micro-batches of ", counted(profile.samples, "sample"),
                  ", this experiment has ", wanted.samples);
  if (profile.device != wanted.device)
    return concat("it was measured on ", profile.device, ", this experiment runs on ",
                  wanted.device);
  if (profile.precision != wanted.precision)
    return concat("it is of ", profile.precision, ", this experiment computes in ",
                  wanted.precision);
  if (profile.memory_format != wanted.memory_format && experiment.layout.channels_last)
    return concat("it is of memory_format ", profile.memory_format, ", this experiment has ",
                  wanted.memory_format);
  if (profile.threads != wanted.threads)
    return concat("it was measured with pipeline.threads: ", profile.threads,
                  ", this experiment has ", wanted.threads);
  if (profile.digest != wanted.digest)
    return "it is of the same model with other options or an imported module that has changed, or "
           "of another loss or optimizer";
  const auto same = [](const LayerCost& cost, const LayerPtr& layer) {
    return cost.name == layer->name();
  };
  if (!std::ranges::equal(profile.layers, experiment.layers, same))
    return concat("its ", counted(profile.layers.size(), "layer"), " cannot be the model's ",
                  experiment.layers.size());
  return {};
}

}  // namespace pipewright
