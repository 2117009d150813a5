// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/codecs/codec.h"
#include "core/config/experiment_keys.h"
#include "core/experiment/balance.h"
#include "core/experiment/identity.h"
#include "core/experiment/path_options.h"
#include "core/experiment/sections.h"
#include "core/schedule/predictions.h"
#include "core/schedule/schedule_size.h"
#include "core/stage/memory_format.h"
#include "core/stage/skips.h"

namespace pipewright {
namespace {

constexpr const char* kOwnFormat = "pipewright";  ///< format of weights files
constexpr std::size_t kMostWorkers = 65536;
constexpr double kManyPasses = 1e5;  // passes of a mini-batch

/// Reads `{name: …, options…}` with the constructor registered under that name. `more` reads the
/// options that all parts of the kind share.
template <class Part, class More>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help,
                                const More& more) {
  const Registry<Part>& registry = Registry<Part>::instance();
  Options options = root.section(section, help);
  const std::string name = options.choice("name", registry.names(), fallback,
                                          "Name of the part; `pipewright list` shows all.");
  std::unique_ptr<Part> part = registry.find(name)->make(options);
  more(options);
  options.finish();
  return part;
}

template <class Part>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help) {
  return read_part<Part>(root, section, fallback, help, [](Options&) {});
}

/// Place of a dotted option, or of the innermost section around it that the document has.
Place place_in(const Value& document, std::string dotted) {
  for (;;) {
    if (const Value* value = document.find_path(dotted)) return value->place;
    const std::size_t dot = dotted.rfind('.');
    if (dot == std::string::npos) return document.place;
    dotted.resize(dot);
  }
}

/// Place of the option with whose name a scheme's message begins, such as "pipeline.stages is 3;
/// …"; of the scheme if it begins otherwise or the option is not given.
Place place_of(const Value& document, const std::string& message) {
  const std::string name = message.substr(0, message.find(' '));
  const Value* value = document.find_path(name);
  const bool dotted = name.find('.') != std::string::npos;
  return dotted && value != nullptr ? value->place : place_in(document, "scheme");
}

std::vector<std::string> read_fresh(Options& options) {
  const Value given = options.any("fresh", Value::sequence(),
                                  "Layers that are initialised afresh, whatever the weights file "
                                  "holds for them, such as a classifier of other classes: "
                                  "[classifier].");
  std::vector<std::string> layers;
  if (!given.is(Value::Kind::Sequence))
    options.problem(
        "fresh", concat("is ", given.shown(), "; expected a list of layers such as [classifier]"));
  for (std::size_t i = 0; i < given.items.size(); ++i) {
    const Value& layer = given.items[i];
    if (layer.is(Value::Kind::Text))
      layers.push_back(layer.text);
    else
      options.problem(concat("fresh[", i, "]"),
                      concat("is ", layer.shown(), "; expected the name of a layer"));
  }
  return layers;
}

/// Sets the names of the model's tensors in the format of its weights file.
void name_weights(Experiment& e, const Value& resolved) {
  const std::string model = resolved.find_path("model.name")->text;
  const std::string format = resolved.find_path("model.weights_format")->text;
  if (format == kOwnFormat) return;
  const ForeignNamesRegistry& registry = ForeignNamesRegistry::instance();
  const auto* make = registry.find(model, format);
  if (make == nullptr) {
    std::vector<std::string> known = registry.formats(model);
    known.insert(known.begin(), kOwnFormat);
    throw Error(ErrorKind::Experiment,
                concat("model.weights_format is ", format, ", but the tensor names of ", format,
                       " are not known for ", model, "; known: ", join(known, ", ")));
  }
  e.weights.names = (*make)(*resolved.find("model"));
}

/// Sets the worker of each stage, by the scheme if the experiment does not, and the device of each
/// worker.
void place_stages(Experiment& e, const Value& document, Problems& problems) {
  PipelineOptions& p = e.pipeline;
  try {
    if (p.placement.empty()) p.placement = e.scheme->placement(p.stages);
  } catch (const Error& error) {
    problems.add(place_of(document, error.message()), error.message(), error.kind());
  }
  const auto each = static_cast<std::size_t>(e.shape(1).workers_per_replica());
  auto workers = each * static_cast<std::size_t>(p.replicas);
  if (workers > kMostWorkers) {
    problems.add(
        place_in(document, "pipeline.replicas"),
        concat("pipeline.replicas is ", p.replicas, ", which makes ", counted(workers, "worker"),
               "; at most ", grouped_text(kMostWorkers), " are possible"));
    p.replicas = 1;  // continue with fewer, to find other problems
    workers = each;
  }
  const Value* given = document.find_path("pipeline.device");
  const bool list = given != nullptr && given->is(Value::Kind::Sequence);
  const std::size_t devices = list ? given->items.size() : workers;
  if (devices > 0 && devices != workers)
    problems.add(place_in(document, "pipeline.device"),
                 concat("pipeline.device has ", counted(devices, "device"), " for ",
                        counted(workers, "worker"),
                        "; expected one device per worker, or one word for all"));
  if (p.devices.size() == 1) p.devices.assign(workers, p.devices.front());
}

std::vector<NamedProbe> read_probes(Options& root) {
  const Registry<Probe>& registry = Registry<Probe>::instance();
  std::vector<NamedProbe> probes;
  for (Options& options : root.sections(
           "probes",
           "Probes, which measure beside the training what a scheme does to weights and gradients, "
           "and write probes.csv: a list such as [{name: weight_gap, every: 50}]; `pipewright list "
           "probes` shows all. They change no bit of the training.")) {
    NamedProbe& named = probes.emplace_back();
    named.name = options.choice("name", registry.names(), "norms",
                                "Name of the probe; `pipewright list probes` shows all.");
    if (!options.given("name")) options.problem("name", "is missing; expected the name of a probe");
    named.probe = registry.find(named.name)->make(options);
    options.finish();
  }
  return probes;
}

/// Reports the probes that cannot measure this training.
void check_probes(const Experiment& e, const Value& document, const Value& resolved,
                  Problems& problems) {
  if (e.probes.empty()) return;
  constexpr int kManyStages = 64;
  const int steady = 2 * std::min(e.pipeline.stages, kManyStages) + 2;  // mini-batches
  const Predictions predictions = predictions_of(e.scheme->schedule(e.shape(steady)));
  const ProbedTraining training{.scheme = resolved.find_path("scheme.name")->text,
                                .stages = e.pipeline.stages,
                                .microbatches = e.pipeline.microbatches,
                                .serial = e.pipeline.execution == Execution::Serial,
                                .compresses = !e.pipeline.compression.empty(),
                                .predicts = predictions.any || predictions.by_drift};
  const Value* const given = document.find("probes");
  for (std::size_t i = 0; i < e.probes.size(); ++i)
    if (const std::string why = e.probes[i].probe->refusal(training); !why.empty())
      problems.add(given->items[i].place, concat("probes[", i, "] ", e.probes[i].name, " ", why),
                   ErrorKind::Experiment);
}

/// Checks that concern several sections.
void check_together(Experiment& e, const BalanceOption& balance, const Value& document,
                    const Value& resolved, Problems& problems) {
  const std::int64_t share = e.loader.batch_size / e.pipeline.replicas;
  if (share < 1)
    problems.add(
        place_in(document, "pipeline.replicas"),
        concat("pipeline.replicas is ", e.pipeline.replicas, ", but loader.batch_size only ",
               e.loader.batch_size, "; each replica needs a sample of every mini-batch"));
  else if (share < e.pipeline.microbatches)
    problems.add(place_in(document, "pipeline.microbatches"),
                 concat("pipeline.microbatches is ", e.pipeline.microbatches,
                        "; a mini-batch has only ", counted(share, "sample"),
                        e.pipeline.replicas > 1 ? " per replica" : "", " (loader.batch_size)"));
  const bool list = document.find_path("pipeline.balance") != nullptr;
  try {
    e.layers = e.model->layers();
    e.pipeline.channels_last = e.pipeline.channels_last && has_convolutions(e.layers);
    e.measured_balance = balance.measured;
    e.balance = balanced(*e.model, e.layers, e.pipeline.stages, balance.rule, balance.list);
    if (!e.balance.empty()) e.skips = skips_between(e.layers, e.balance);
  } catch (const Error& error) {
    problems.add(place_in(document, list ? "pipeline.balance" : "pipeline.stages"), error.message(),
                 error.kind());
  }
  try {
    name_weights(e, resolved);
  } catch (const Error& error) {
    problems.add(place_in(document, "model.weights_format"), error.message(), error.kind());
  }
  try {
    const PipelineShape shape = e.shape(1);
    const double passes = 1.0 * shape.stages * shape.replicas * shape.microbatches;
    if (!problems.empty() && passes > kManyPasses)
      return;  // already refused: save the time of a large schedule
    check_schedule_size(shape, 1);
    e.scheme->schedule(shape);
    check_probes(e, document, resolved, problems);
  } catch (const Error& error) {
    problems.add(place_of(document, error.message()), error.message(), error.kind());
  }
}

void read_sections(Options& root, Experiment& e, BalanceOption& balance) {
  e.name = root.text("name", "experiment",
                     "Name of the run and of its folder: at most 100 letters, digits, '-', '_', "
                     "'.' and spaces. Default: the file's name without its suffix.");
  e.dataset =
      read_part<Dataset>(root, "dataset", "digits", "Data to train on and to evaluate with.");
  e.loader = read_loader(root);
  e.model = read_part<Model>(root, "model", "mlp", "Model that is trained.", [&](Options& o) {
    e.weights.path = o.path(
        "weights", "",
        "Safetensors file with initial weights, which has exactly this model's tensors; \"\" = "
        "initialise.");
    o.choice(
        "weights_format", {kOwnFormat, "torchvision", "huggingface"}, kOwnFormat,
        "Library that named the file's tensors; another than ours only for models that it has.");
    e.weights.fresh = read_fresh(o);
  });
  const bool own_loss = e.model->task() == Task::Minimize;
  e.loss = read_part<Loss>(root, "loss", own_loss ? "output" : "cross_entropy",
                           "Loss of the last stage and of auxiliary heads.");
  e.metric_names = {"accuracy"};
  for (const auto& names : {e.dataset->metrics(), read_metrics(root)})
    for (const std::string& name : names)
      if (std::ranges::count(e.metric_names, name) == 0) e.metric_names.push_back(name);
  for (const std::string& name : e.metric_names) e.metrics.push_back(make_metric(name));
  e.translation = read_translation(root);
  PipelineSection pipeline = read_pipeline(root);
  e.pipeline = std::move(pipeline.options);
  balance = std::move(pipeline.balance);
  e.scheme = read_part<Scheme>(root, "scheme", "model_parallel",
                               "Training scheme: when each pass runs, and with which weights.");
  e.optimizer = read_part<Optimizer>(root, "optimizer", "sgd",
                                     "Optimizer, with PyTorch's mathematics and defaults.");
  Options lr = root.section("lr_schedule", "Learning rate over time.");
  e.lr_schedule = LrSchedule(lr);
  lr.finish();
  e.train = read_train(root);
  e.probes = read_probes(root);
  e.output = read_output(root);
}

std::vector<std::string> paths_among(const std::vector<OptionInfo>& options,
                                     const std::string& section) {
  std::vector<std::string> paths;
  for (const OptionInfo& option : options) {
    if (option.type == OptionInfo::Type::Path) paths.push_back(section + option.name);
    for (std::string& path : paths_among(option.section, section + option.name + "."))
      paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

PipelineShape Experiment::shape(int minibatches, int first_minibatch) const {
  return {.stages = pipeline.stages,
          .replicas = pipeline.replicas,
          .microbatches = pipeline.microbatches,
          .minibatches = minibatches,
          .first_minibatch = first_minibatch,
          .placement = pipeline.placement,
          .skips = skips};
}

Schedule Experiment::schedule(int minibatches, int first_minibatch) const {
  const PipelineShape wanted = shape(minibatches, first_minibatch);
  check_schedule_size(wanted, minibatches);
  return with_recomputation(scheme->schedule(wanted), pipeline.recompute);
}

std::string Experiment::where(const std::string& dotted) const {
  return place_in(given, dotted).text();
}

Experiment read_experiment(const Value& given) {
  return read_experiment(given, {});
}

Experiment read_experiment(const Value& given, const Problems& faults) {
  const Value document = options_of_run(given);
  Problems problems;
  problems.add(faults);
  Options root(&document, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  root.finish();
  place_stages(e, document, problems);
  check_together(e, balance, document, root.resolved(), problems);
  problems.throw_if_any();
  e.given = document;
  e.resolved = root.resolved();
  e.digest = config_digest(e.resolved);
  e.identity = identity_of(e.resolved, paths_among(root.declared(), ""));
  return e;
}

std::vector<std::string> path_options(const Value& resolved) {
  Problems problems;
  Options root(&resolved, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  return paths_among(root.declared(), "");
}

std::vector<OptionInfo> experiment_options() {
  const Value nothing = Value::mapping();
  Problems problems;
  Options root(&nothing, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  return root.declared();
}

namespace {

template <class Part>
std::vector<OptionInfo> options_of(const std::string& name) {
  const auto* entry = Registry<Part>::instance().find(name);
  if (entry == nullptr) return {};
  const Value nothing = Value::mapping();
  Problems problems;
  Options options(&nothing, "", problems);
  entry->make(options);
  return options.declared();
}

}  // namespace

std::vector<OptionInfo> part_options(const std::string& kind, const std::string& name) {
  if (kind == "scheme") return options_of<Scheme>(name);
  if (kind == "model") return options_of<Model>(name);
  if (kind == "dataset") return options_of<Dataset>(name);
  if (kind == "optimizer") return options_of<Optimizer>(name);
  if (kind == "loss") return options_of<Loss>(name);
  if (kind == "codec") return options_of<Codec>(name);
  if (kind == "probe") return options_of<Probe>(name);
  return {};
}

}  // namespace pipewright
