// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/point_reader.h"

#include <algorithm>

#include "core/experiment/identity.h"
#include "core/experiment/reading.h"
#include "core/experiment/sections.h"

namespace pipewright {
namespace {

void add_key(const Value& value, std::string& key) {
  constexpr char kEnd = '\0';
  if (value.is(Value::Kind::Text)) (key += value.place.file) += kEnd;
  if (!value.is(Value::Kind::Mapping) && !value.is(Value::Kind::Sequence))
    (key += to_json(value)) += kEnd;
  key += value.is(Value::Kind::Mapping) ? '{' : '[';
  for (const Value& item : value.items) add_key(item, key);
  for (const auto& [name, field] : value.fields) {
    (key += name) += kEnd;
    add_key(field, key);
  }
  key += ']';
}

/// Devices "cuda" are as many GPUs; "cuda:2" is the third that a process sees.
int gpus_of(const std::vector<std::string>& devices) {
  int any = static_cast<int>(std::ranges::count(devices, "cuda"));
  for (const std::string& device : devices)
    if (device.starts_with("cuda:")) any = std::max(any, std::stoi(device.substr(5)) + 1);
  return any;
}

PointExperiment planned(const Experiment& experiment) {
  const PipelineOptions& pipeline = experiment.pipeline;
  const int workers = experiment.shape(1).workers();
  const bool alone = pipeline.execution == Execution::Serial;
  return {.resolved = experiment.resolved,
          .digest = experiment.digest,
          .cores = pipeline.threads * (alone ? 1 : workers),
          .processes = pipeline.execution == Execution::Mpi ? workers : 0,
          .gpus = gpus_of(pipeline.devices),
          .settled_late = experiment.layout.open(),
          .on_cpus = std::ranges::all_of(pipeline.devices,
                                         [](const std::string& name) { return name == "cpu"; })};
}

}  // namespace

std::string key_of(const Value& document) {
  std::string key;
  add_key(document, key);
  return key;
}

std::optional<std::string> key_but_seed(const Value& document) {
  const Value* seed = document.find_path("train.seed");
  if (seed == nullptr || !seed->is(Value::Kind::Integer) || seed->integer < 0 ||
      static_cast<double>(seed->integer) > kLargestSeed)
    return std::nullopt;
  Value rest = document;
  std::erase_if(rest.find("train")->fields,
                [](const auto& field) { return field.first == "seed"; });
  return key_of(rest);
}

PointExperiment PointReader::read(const Value& document) {
  const std::optional<std::string> key = key_but_seed(document);
  if (!key) return planned(read_experiment(document, {}, forms_));
  const auto found = known_.find(*key);
  if (found == known_.end()) return known_[*key] = planned(read_experiment(document, {}, forms_));
  PointExperiment experiment = found->second;
  experiment.resolved = experiment.resolved.with_seed(document.find_path("train.seed")->integer);
  experiment.digest = config_digest(experiment.resolved.whole());
  return experiment;
}

}  // namespace pipewright
