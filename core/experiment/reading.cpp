// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/reading.h"

#include <algorithm>
#include <concepts>
#include <memory>
#include <utility>

#include "core/base/text.h"
#include "core/config/experiment_keys.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/checks.h"
#include "core/experiment/identity.h"
#include "core/experiment/perturbation.h"
#include "core/optim/optimizer_groups.h"
#include "core/schedule/other_names.h"
#include "core/system/given_files.h"

namespace pipewright {
namespace {

constexpr const char* kNoOptimizer = "none";  // where groups have all parameters

/// "; sgd and rmsprop have it": the parts of a kind that have such an option; "" for none or many.
template <class Part>
std::string owners_of(const std::string& option) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> owners;
  for (const std::string& name : Registry<Part>::instance().names()) {
    Problems unheard;
    Options options(nullptr, "", unheard);
    (void)Registry<Part>::instance().find(name)->make(options);
    if (std::ranges::count(options.declared(), option, &OptionInfo::name) > 0)
      owners.push_back(name);
  }
  if (owners.empty() || owners.size() > kMost) return {};
  return concat("; ", join(owners, " and "), owners.size() == 1 ? " has it" : " have it");
}

/// Reads `{name: …, options…}` with the constructor registered under that name. `more` reads the
/// options that all parts of the kind share.
template <class Part, class More>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help,
                                const More& more) {
  const Registry<Part>& registry = Registry<Part>::instance();
  Options options = root.section(section, help);
  constexpr auto kExplain = std::same_as<Part, Scheme> ? explain_other_name : nullptr;
  const std::string name = options.part("name", registry.names(), fallback,
                                        "Name of the part; `pipewright list` shows all.", kExplain);
  std::unique_ptr<Part> part = registry.find(name)->make(options);
  more(options);
  options.finish(owners_of<Part>);
  return part;
}

template <class Part>
std::unique_ptr<Part> read_part(Options& root, const std::string& section,
                                const std::string& fallback, const std::string& help) {
  return read_part<Part>(root, section, fallback, help, [](Options&) {});
}

std::vector<std::string> read_fresh(Options& options) {
  const Value given =
      options.any("fresh", Value::sequence(),
                  "Layers that are initialised afresh, whatever the weights file holds for them, "
                  "such as a classifier of other classes: [classifier].");
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

/// The words of messages about a list of registered parts.
struct ListWords {
  std::string key, what;     ///< of the section
  std::string name_default;  ///< of `name` in `describe`; an entry must give it
  std::string part;          ///< "probe"
  std::string once;          ///< why each may stand there only once, after "expected each "
};

/// Reads a list of registered parts, each with its own options and at most once.
template <class Named, class Part>
std::vector<Named> read_list(Options& root, const ListWords& words,
                             std::shared_ptr<const Part> Named::*part) {
  const Registry<Part>& registry = Registry<Part>::instance();
  std::vector<Named> all;
  for (Options& options : root.sections(words.key, words.what)) {
    Named& named = all.emplace_back();
    named.name = options.part(
        "name", registry.names(), words.name_default,
        concat("Name of the ", words.part, "; `pipewright list ", words.key, "` shows all."));
    if (!options.given("name"))
      options.problem("name", concat("is missing; expected the name of a ", words.part));
    named.*part = registry.find(named.name)->make(options);
    if (options.given("name") && std::ranges::count(all, named.name, &Named::name) > 1)
      options.problem("name",
                      concat("is '", named.name, "' a second time; expected each ", words.once));
    options.finish(owners_of<Part>);
  }
  return all;
}

std::vector<NamedProbe> read_probes(Options& root) {
  return read_list(
      root,
      {.key = "probes",
       .what = "Probes, which measure beside the training what a scheme does to weights and "
               "gradients, and write probes.csv: a list such as [{name: weight_gap, every: 50}]; "
               "`pipewright list probes` shows all. They change no bit of the training.",
       .name_default = "norms",
       .part = "probe",
       .once = "probe once, because rows of probes.csv name nothing but the probe: keep one of "
               "them, or give each a run of its own"},
      &NamedProbe::probe);
}

std::vector<NamedGradientRule> read_gradient_rules(Options& root) {
  return read_list(
      root,
      {.key = "gradient_rules",
       .what = "What is done to the gradient of a stage before its update, in this order: a list "
               "such as [{name: clip, norm: 1}]; `pipewright list gradient_rules` shows all.",
       .name_default = "clip",
       .part = "rule",
       .once = "gradient rule once"},
      &NamedGradientRule::rule);
}

/// A glob, or a list of them.
std::vector<std::string> read_globs(Options& options) {
  const Value given =
      options.any("match", Value(),
                  "Names of the group's parameters, as weights files have them: layers.*.weight, "
                  "or a list. * stands for any characters, ? for one.");
  const bool list = given.is(Value::Kind::Sequence);
  constexpr const char* kExpected = "expected names of parameters, such as layers.*.weight";
  std::vector<std::string> globs;
  for (const Value& each : list ? given.items : std::vector{given})
    if (each.is(Value::Kind::Text)) globs.push_back(each.text);
  if (!options.given("match"))
    options.problem("match", concat("is missing; ", kExpected));
  else if (list ? globs.size() < given.items.size() : globs.empty())
    options.problem("match", concat("is ", list ? "no list of names" : given.shown(), "; ",
                                    kExpected, ", or a list of such"));
  else if (globs.empty())
    options.problem("match", concat("is empty, so the group has no parameter; ", kExpected));
  return globs;
}

/// Reads the optimizer of all parameters, or groups of them with optimizers of their own.
std::shared_ptr<const Optimizer> read_optimizer(Options& root) {
  const Registry<Optimizer>& registry = Registry<Optimizer>::instance();
  Options options =
      root.section("optimizer", "Optimizer, with PyTorch's mathematics and defaults.");
  std::vector<std::string> names = registry.names();
  names.emplace_back(kNoOptimizer);
  const std::string name =
      options.part("name", names, options.given("groups") ? kNoOptimizer : "sgd",
                   "Name of the part; `pipewright list` shows all. none: `groups` have all "
                   "parameters, which is the default where they are given.");
  std::shared_ptr<const Optimizer> rest;
  if (name != kNoOptimizer) rest = registry.find(name)->make(options);
  std::vector<OptimizerGroup> groups;
  for (Options& each : options.sections(
           "groups",
           "Optimizers of some parameters: a list such as [{match: layers.*_proj.weight, name: "
           "muon, lr: 0.02}, {match: lm_head.*, name: adamw}]. A parameter belongs to the first "
           "group that matches, and if none does, to the optimizer around them. A group without a "
           "name is of that optimizer, with its options where the group has none. `lr_schedule` "
           "multiplies the rates of all alike, so its `end_lr` is a share of them.")) {
    OptimizerGroup& group = groups.emplace_back();
    group.option = concat("optimizer.groups[", groups.size() - 1, "]");
    group.match = read_globs(each);
    const std::string part = each.part("name", registry.names(), "adamw", "Name of the part.");
    if (!each.given("name"))
      each.problem("name",
                   "is missing; expected the name of an optimizer, here or for all groups in "
                   "optimizer.name");
    group.optimizer = registry.find(part)->make(each);
    each.finish(owners_of<Optimizer>);
  }
  if (groups.empty() && !rest)
    options.problem("name", "is none; expected an optimizer, or groups that have one each");
  options.finish(owners_of<Optimizer>);
  if (groups.empty()) return rest ? rest : registry.find("sgd")->make(options);
  if (rest) groups.push_back({"optimizer", {"*"}, std::move(rest)});
  return std::make_shared<OptimizerGroups>(std::move(groups));
}

/// A group without a name is of the optimizer around it, and has its options where it has none.
void complete_groups(Value& document) {
  Value* const optimizer = document.find("optimizer");
  if (optimizer == nullptr || optimizer->find("name") == nullptr) return;
  Value* const groups = optimizer->find("groups");
  if (groups == nullptr || !groups->is(Value::Kind::Sequence)) return;
  const Value around = *optimizer;
  for (Value& group : groups->items) {
    if (!group.is(Value::Kind::Mapping) || group.find("name") != nullptr) continue;
    for (const auto& [key, value] : around.fields)
      if (key != "groups" && group.find(key) == nullptr) group.at_or_add(key) = value;
  }
}

}  // namespace

std::unique_ptr<Dataset> read_dataset(Options& root) {
  return read_part<Dataset>(root, "dataset", "digits", "Data to train on and to evaluate with.");
}

void read_sections(Options& root, Experiment& e, BalanceOption& balance) {
  e.name = root.text("name", "experiment",
                     "Name of the run and of its folder: at most 100 letters, digits, '-', '_', "
                     "'.' and spaces. Default: the file's name without its suffix.");
  const std::unique_ptr<Dataset> dataset = read_dataset(root);
  e.loader = read_loader(root);
  e.model = read_part<Model>(root, "model", "mlp", "Model that is trained.", [&](Options& o) {
    e.weights.path = o.path("weights", "",
                            "Safetensors file with initial weights, which has exactly this model's "
                            "tensors; \"\" = initialise.");
    o.choice(
        "weights_format", {kOwnFormat, "torchvision", "huggingface"}, kOwnFormat,
        "Library that named the file's tensors; another than ours only for models that it has.");
    e.weights.fresh = read_fresh(o);
  });
  const bool own_loss = e.model->task() == Task::Minimize;
  e.loss = read_part<Loss>(root, "loss", own_loss ? "output" : "cross_entropy",
                           "Loss of the last stage and of auxiliary heads.");
  e.metric_names = {"accuracy"};
  const std::vector<std::string> of_loss = e.loss->compares_with() == Task::Regress
                                               ? std::vector<std::string>{"mae"}
                                               : std::vector<std::string>();
  for (const auto& names : {of_loss, dataset->metrics(), read_metrics(root)})
    for (const std::string& name : names)
      if (std::ranges::count(e.metric_names, name) == 0) e.metric_names.push_back(name);
  for (const std::string& name : e.metric_names) e.metrics.push_back(make_metric(name));
  e.translation = read_translation(root);
  PipelineSection pipeline = read_pipeline(root);
  e.pipeline = std::move(pipeline.options);
  e.layout = std::move(pipeline.layout);
  balance = std::move(pipeline.balance);
  e.scheme = read_part<Scheme>(root, "scheme", "model_parallel",
                               "Training scheme: when each pass runs, and with which weights.");
  e.optimizer = read_optimizer(root);
  Options lr = root.section("lr_schedule", "Learning rate over time.");
  e.lr_schedule = LrSchedule(lr);
  lr.finish();
  e.train = read_train(root);
  e.gradient_rules = read_gradient_rules(root);
  e.perturbation = read_perturbation(root);
  e.probes = read_probes(root);
  e.output = read_output(root);
}

/// No command replaces what the experiment names, whether it reads that or not.
void remember_named(const std::vector<std::string>& paths, const Value& resolved) {
  for (const std::string& path : paths)
    if (const Value* const named = resolved.find_path(path); named != nullptr)
      remember_named_path(named->text);
}

Experiment read_experiment(const Value& given, const Problems& faults) {
  KnownForms none;
  return read_experiment(given, faults, none);
}

Experiment read_experiment(const Value& given, const Problems& faults, KnownForms& forms) {
  const Value written = options_of_run(given);
  Value document = written;
  complete_model(document, forms);
  complete_groups(document);
  Problems problems;
  problems.add(faults);
  Options root(&document, "", problems);
  Experiment e;
  BalanceOption balance;
  try {
    read_sections(root, e, balance);
    root.finish();
    check_together(e, balance, document, root.resolved(), problems);
  } catch (const Error&) {  // perhaps of a part that was made with wrong options
    problems.throw_if_any();
    throw;
  }
  problems.throw_if_any();
  e.given = written;
  e.resolved = root.resolved();
  e.digest = config_digest(e.resolved);
  const std::vector<std::string> paths = paths_among(root.declared());
  e.identity = identity_of(e.resolved, paths);
  remember_named(paths, e.resolved);
  return e;
}

}  // namespace pipewright
