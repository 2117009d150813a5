// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/checks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/experiment/balance.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/grouped_parameters.h"
#include "core/experiment/perturbation.h"
#include "core/experiment/stage_layout.h"
#include "core/nn/memory_format.h"
#include "core/optim/optimizer_groups.h"
#include "core/schedule/execution_order.h"
#include "core/schedule/prove.h"
#include "core/schedule/schedule_size.h"
#include "core/schedule/slices.h"
#include "core/schedule/versions.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostWorkers = 65536;
constexpr double kManyPasses = 1e5;  // passes of a mini-batch

/// Place of the option with whose name a scheme's message begins, such as "pipeline.stages is 3;
/// …"; of the scheme if it begins otherwise or the option is not given.
Place place_of(const Value& document, const std::string& message) {
  const std::string name = message.substr(0, message.find(' '));
  const Value* value = document.find_path(name);
  const bool dotted = name.find('.') != std::string::npos;
  return dotted && value != nullptr ? value->place : place_in(document, "scheme");
}

/// Sets the worker of each stage, by the scheme if the experiment does not, and the device of each
/// worker.
void place_stages(Experiment& e, const Value& document, Problems& problems) {
  PipelineOptions& p = e.pipeline;
  Layout& layout = e.layout;
  try {
    if (layout.placement.empty()) layout.placement = e.scheme->placement(p.stages);
    const bool many = as_size(p.stages) * as_size(p.replicas) > 2 * kMostWorkers;  // refused below
    if (!many) layout.replica_placement = e.scheme->replica_placement(p.stages, p.replicas);
  } catch (const Error& error) {
    problems.add(place_of(document, error.message()), error.message(), error.kind());
  }
  const auto per_replica = static_cast<std::size_t>(e.shape(1).workers_per_replica());
  auto workers = layout.replica_placement.empty() ? per_replica * as_size(p.replicas)
                                                  : as_size(e.shape(1).workers());
  if (workers > kMostWorkers) {
    problems.add(
        place_in(document, "pipeline.replicas"),
        concat("pipeline.replicas is ", p.replicas, ", which makes ", counted(workers, "worker"),
               "; at most ", grouped_text(kMostWorkers), " are possible"));
    p.replicas = 1;  // continue with fewer, to find other problems
    layout.replica_placement.clear();
    workers = per_replica;
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

/// Sets the names of the model's tensors in the format of its weights file.
void name_weights(Experiment& e, const Value& resolved) {
  for (const LayerPtr& layer : e.layers)
    for (const ParameterSpec& spec : layer->parameters())
      if (!spec.drawn_as.empty())
        e.weights.begins_as[parameter_name(*layer, spec.name)] = spec.drawn_as;
  const Value* const tie = resolved.find_path("model.tie");
  e.weights.copies = tie != nullptr && tie->text == "late";
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

/// Reports layers that neither are initialised nor have a weights file to begin with.
void check_first_weights(const Experiment& e, const Value& document, Problems& problems) {
  if (e.model->initialises()) return;
  if (e.weights.path.empty())
    problems.add(place_in(document, "model.weights"),
                 "model.weights is missing; expected the file weights.safetensors of the folder, "
                 "from which the training starts");
  if (!e.weights.fresh.empty())
    problems.add(
        place_in(document, "model.fresh"),
        "model.fresh names layers to initialise, but an imported module does not say how its "
        "layers are initialised; initialise them in Python and import it again");
}

/// Finds the delays that some probes and optimizers need, and reports these where the schedule has
/// no steady state.
void find_delays(Experiment& e, const Value& document, Problems& problems) {
  const auto needs = [](const NamedProbe& each) { return each.probe->needs_delays(); };
  const auto first = std::ranges::find_if(e.probes, needs);
  const bool probed = first != e.probes.end();
  const bool stepped = e.optimizer->of_stage(0, e.pipeline.stages) != nullptr;
  if (!probed && !stepped) return;
  try {
    for (const StageDelay& delay : steady_delays(e)) e.delays.push_back(delay.forward);
  } catch (const Error&) {
    const auto i = static_cast<std::size_t>(first - e.probes.begin());
    if (probed)
      problems.add(document.find("probes")->items[i].place,
                   concat("probes[", i, "] ", first->name,
                          " needs an option `delay` here, because the schedule has no steady state "
                          "whose delay it could take; give updates, as in delay: 2"));
    for (const OptimizerGroup& member : members_of(e.optimizer))
      if (member.optimizer->of_stage(0, e.pipeline.stages) != nullptr)
        problems.add(place_in(document, dotted(member.option + ".momentum_by_delay")),
                     member.option +
                         ".momentum_by_delay needs the delay of each stage, but the schedule "
                         "has no steady state whose delays it could take; expected none");
    return;
  }
  for (int stage = 0; stepped && stage < e.pipeline.stages; ++stage)
    e.stage_optimizers.push_back(
        e.optimizer->of_stage(e.delays[as_size(stage)], e.pipeline.stages));
}

/// What is wrong with the name of a layer, or of a module within one, that stands for all
/// parameters below it; "" if nothing is.
std::string fault_of_name(const std::string& name, const std::vector<LayerPtr>& layers) {
  std::vector<std::string> known;
  bool found = false;
  for (const LayerPtr& layer : layers) {
    known.push_back(layer->name());
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string parameter = parameter_name(*layer, spec.name);
      const bool below = parameter.starts_with(name + ".");
      if (layer->name() == name && !below)
        return concat("the layer '", name, "', which has the parameter ", parameter,
                      ", too; name the modules of the layer");
      found = found || below;
    }
    found = found || layer->name() == name;
  }
  if (found) return {};
  return concat("'", name, "', which is no layer of the model", did_you_mean(name, known));
}

/// Reports layers that the optimizer's options name and the model does not have.
void check_named_layers(const Experiment& e, const Value& document, Problems& problems) {
  for (const OptimizerGroup& member : members_of(e.optimizer)) {
    const auto [named_by, named] = member.optimizer->named_layers();
    const std::string option = concat(member.option, ".", named_by);
    for (const std::string& name : named)
      if (const std::string fault = fault_of_name(name, e.layers); !fault.empty())
        problems.add(place_in(document, dotted(option)), concat(option, " names ", fault));
  }
}

/// Reports gradient rules over the model where updates do not wait for each other.
void check_rules_over_model(const Experiment& e, const Value& document, Problems& problems) {
  for (std::size_t i = 0; i < e.gradient_rules.size(); ++i) {
    if (!e.gradient_rules[i].rule->over_model()) continue;
    const auto refuse = [&](const std::string& why) {
      problems.add(
          document.find("gradient_rules")->items[i].place,
          concat("gradient_rules[", i, "] ", e.gradient_rules[i].name, " with over: model ", why));
    };
    if (e.train.precision.narrow() == at::kHalf)
      refuse(
          "needs the gradients of all stages, but in float16 a stage may skip an update; expected "
          "over: stage, or another train.precision than float16");
    constexpr int kFew = 3;  // mini-batches
    if (minibatch_out_of_turn(e.schedule_in(e.shape(kFew))) != kNowhere)
      refuse(
          "needs a scheme that updates all stages between two mini-batches, such as gpipe; "
          "expected over: stage");
  }
}

/// Reports gradient rules that compare versions where there is not one version to compare with.
void check_gradient_rules(const Experiment& e, const Value& document, Problems& problems) {
  check_rules_over_model(e, document, problems);
  const auto compares = std::ranges::find_if(e.gradient_rules, [](const NamedGradientRule& each) {
    return each.rule->compares_versions();
  });
  if (compares == e.gradient_rules.end()) return;
  const auto i = static_cast<std::size_t>(compares - e.gradient_rules.begin());
  const auto refuse = [&](const std::string& why) {
    problems.add(document.find("gradient_rules")->items[i].place,
                 concat("gradient_rules[", i, "] ", compares->name, " ", why));
  };
  if (const int delay = e.perturbation.gradient_delay; delay > 0)
    refuse(concat(
        "compares an update's weights with those of its own mini-batch, but here the gradient of "
        "an earlier one is applied; expected perturb.gradient_delay: 0, not ",
        delay));
  constexpr int kManyStages = 64;
  const PipelineShape shape = e.shape(2 * std::min(e.pipeline.stages, kManyStages) + 2);
  try {
    const Schedule schedule = e.schedule_in(shape);
    resolve_versions(schedule, PassIndex(schedule));
  } catch (const MissingWeights& error) {
    refuse(concat("cannot compare: ", error.message()));
  }
}

/// Whether the first stage reads its newest weights in every mini-batch: the pipeline is flushed
/// in between.
bool reads_its_newest(const Experiment& e) {
  constexpr int kManyStages = 64, kAfterAnyWarmUp = 1'000'000'000;
  const int steady = 2 * std::min(e.pipeline.stages, kManyStages) + 2;  // mini-batches
  const ProvedSchedule proved = prove(e.schedule_without_rules(e.shape(steady, kAfterAnyWarmUp)));
  bool newest = true;
  for_each_action(proved.schedule, [&](ActionPlace place, const Action& action) {
    if (action.kind == ActionKind::Forward && action.stage == 0)
      newest &= proved.versions.at(place).key.version == action.minibatch;
  });
  return newest;
}

/// Reports what cannot be had where stages share weights.
void check_shared_weights(const Experiment& e, const Value& document, const Value& resolved,
                          Problems& problems) {
  const Value* const given = resolved.find_path("model.tie");
  const std::string tie = given == nullptr ? "" : given->text;
  const auto refuse = [&](const std::string& why) {
    problems.add(place_in(document, "model.tie"), concat("model.tie is ", tie, ", ", why));
  };
  if (tie == "late" && (e.pipeline.stages == 1 || reads_its_newest(e)))
    refuse(
        "but in one stage, or with a flush after every mini-batch, copies would always be equal; "
        "expected tie: same");
  const bool lends = std::ranges::any_of(
      e.layers, [](const LayerPtr& layer) { return !layer->skips().lends.empty(); });
  if ((!lends && tie != "late") || e.pipeline.stages == 1) return;
  if (!e.scheme->auxiliary_sites(e.pipeline.stages).empty())
    refuse(
        "but with this scheme the first stage does not learn from the last one's loss, whose "
        "gradient it would need; expected tie: none or start");
  if (lends && e.perturbation.weight_noise > 0)
    refuse(
        "whose weights cross once for several micro-batches, but perturb.weight_noise gives each "
        "its own; expected tie: none or start, or no noise");
  for (std::size_t i = 0; i < e.probes.size(); ++i) {
    constexpr std::array<std::string_view, 3> kOfPasses{"gradient_alignment", "gradient_noise",
                                                        "mismatch"};
    if (std::ranges::count(kOfPasses, e.probes[i].name) == 0) continue;
    problems.add(document.find("probes")->items[i].place,
                 concat("probes[", i, "] ", e.probes[i].name,
                        " compares gradients of single passes, but with model.tie: ", tie,
                        " a part of a stage's comes once per mini-batch; expected tie: none or "
                        "start"));
  }
}

/// Reports the probes that cannot measure this training.
void check_probes(const Experiment& e, const Value& document, const Value& resolved,
                  Problems& problems) {
  if (e.probes.empty()) return;
  constexpr int kManyStages = 64;
  const int steady = 2 * std::min(e.pipeline.stages, kManyStages) + 2;  // mini-batches
  const Predictions predictions = predictions_of(e.scheme->schedule(e.shape(steady)));
  const ProbedTraining training{
      .scheme = resolved.find_path("scheme.name")->text,
      .stages = e.pipeline.stages,
      .microbatches = e.pipeline.microbatches,
      .serial = e.pipeline.execution == Execution::Serial,
      .compresses = !e.pipeline.compression.empty(),
      .predicts = predictions.any || predictions.by_drift,
      .local_losses = !e.scheme->auxiliary_sites(e.pipeline.stages).empty(),
      .gradient_delay = e.perturbation.gradient_delay};
  const Value* const given = document.find("probes");
  for (std::size_t i = 0; i < e.probes.size(); ++i)
    if (const std::string why = e.probes[i].probe->refusal(training); !why.empty())
      problems.add(given->items[i].place, concat("probes[", i, "] ", e.probes[i].name, " ", why));
}

/// Records a problem if the schedule predicts by a velocity that the optimizer does not know: it
/// would predict as without it, and two rows of a table would be the same training.
void check_velocity(const Experiment& e, const Schedule& schedule, const Value& document,
                    const Value& resolved, Problems& problems) {
  using Kind = PredictionRule::Kind;
  for (const PredictionRule& rule : schedule.rules) {
    if (e.optimizer->predicts_by(rule.kind)) continue;
    const std::vector<OptimizerGroup> members = members_of(e.optimizer);
    const auto other = std::ranges::find_if(members, [&](const OptimizerGroup& member) {
      return !member.optimizer->predicts_by(rule.kind);
    });
    const std::string name = other->option + ".name";
    const bool lookahead = rule.kind == Kind::Lookahead;
    const bool given = document.find_path("scheme.velocity") != nullptr;
    problems.add(
        place_in(document, given ? "scheme.velocity" : "scheme"),
        concat("the scheme predicts weights by the ", lookahead ? "look-ahead" : "geometric",
               " velocity, which is defined for ", lookahead ? "sgd" : "sgd, adam and adamw", "; ",
               name, " is ", resolved.find_path(dotted(name))->text,
               ", whose predictions are its own; expected scheme.velocity: buffer"));
    return;
  }
}

/// Records a problem if predictions would make parameters decay that do not decay.
void check_predicted_decay(const Experiment& e, const Schedule& schedule, const Value& document,
                           const Value& resolved, Problems& problems) {
  if (std::ranges::none_of(schedule.rules, &PredictionRule::weight_decay)) return;
  for (const OptimizerGroup& member : members_of(e.optimizer)) {
    const std::string option = member.option + ".no_decay";
    const Value* const spared = resolved.find_path(dotted(option));
    if (spared == nullptr || spared->items.empty()) continue;
    problems.add(place_in(document, dotted(option)),
                 concat(option,
                        " names parameters that do not decay, but the scheme predicts the same "
                        "decay for all weights; expected no_decay: [], or predictions without "
                        "decay (adamw_decay_in_prediction: false)"));
  }
}

/// Reports what keeps passes from being recorded as graphs: graphs have numbers and addresses in
/// them, and whatever the host decides in a pass would be decided once for all.
void check_graphs(const Experiment& e, const Value& document, Problems& problems) {
  if (!e.pipeline.cuda_graphs) return;
  const PipelineOptions& p = e.pipeline;
  const bool lends = std::ranges::any_of(
      e.layers, [](const LayerPtr& layer) { return !layer->skips().lends.empty(); });
  const std::string& device = p.devices.front();
  const bool offloads = std::ranges::any_of(p.rewrites, [](const ScheduleRewrite& rewrite) {
    return std::string_view(rewrite.option) == "pipeline.offload";
  });
  struct Need {
    bool met;
    const char* what;
  };
  const Need needs[] = {
      {p.execution == Execution::Serial, "with pipeline.execution: serial"},
      {device.starts_with("cuda") && std::ranges::count(p.devices, device) == std::ssize(p.devices),
       "with pipeline.device: cuda:0, or another CUDA device for all workers"},
      {p.replicas == 1, "with pipeline.replicas: 1"},
      {p.slices == 1, "with pipeline.slices: 1"},
      {e.model->task() != Task::Translate, "with samples of one length, not for translations"},
      {e.train.precision.narrow() != at::kHalf, "in another train.precision than float16"},
      {p.compression.empty(), "without pipeline.compression"},
      {!offloads, "with pipeline.offload: never"},
      {p.batch_norm == RunningStatistics::PerMicrobatch ||
           p.batch_norm == RunningStatistics::PerPass,
       "with pipeline.batch_norm: per_microbatch or per_pass"},
      {p.stages == 1 || (!lends && e.layout.tied.empty()), "with model.tie: none or start"},
      {!e.perturbation.any(), "without perturb"},
      {e.probes.empty(), "without probes"}};
  for (const Need& need : needs)
    if (!need.met)
      problems.add(place_in(document, "pipeline.cuda_graphs"),
                   concat("pipeline.cuda_graphs is true, and passes can be recorded only ",
                          need.what, "; expected that, or cuda_graphs: false"));
}

/// Records problems of an experiment whose passes cannot be cut into slices.
void check_slicing(const Experiment& e, const Schedule& schedule, const Value& document,
                   Problems& problems) {
  const int slices = e.pipeline.slices;
  if (slices == 1) return;
  const auto refuse = [&](const char* option, const std::string& why) {
    problems.add(place_in(document, option), concat("pipeline.slices is ", slices, "; ", why));
  };
  if (!e.model->runs_in_slices())
    refuse("pipeline.slices",
           "slices need a causal model, in which no token sees a later one; expected model: {name: "
           "gpt} or {name: decoder}, or slices: 1");
  if (!e.scheme->auxiliary_sites(e.pipeline.stages).empty())
    refuse("scheme",
           "slices need a scheme with one loss, that of the last stage; expected scheme: {name: "
           "seq1f1b}");
  else if (slice_out_of_order(schedule, PassIndex(schedule)) != kNowhere)
    refuse("scheme",
           "a slice gives a gradient to the keys of the slices before it, so backwards have to go "
           "from the last slice of a micro-batch to the first, and this scheme's do not; expected "
           "scheme: {name: seq1f1b}, or gpipe");
  if (!e.pipeline.compression.empty())
    refuse("pipeline.compression",
           "codecs keep and draw by samples, not by slices of them; expected no "
           "pipeline.compression, or slices: 1");
  for (const ScheduleRewrite& rewrite : e.pipeline.rewrites)
    if (!rewrite.not_in_slices.empty())
      refuse(rewrite.option, rewrite.not_in_slices + ", or slices: 1");
  if (!e.probes.empty())
    refuse("probes", "probes measure passes of whole samples; expected no probes, or slices: 1");
}

}  // namespace

void check_together(Experiment& e, const BalanceOption& balance, const Value& document,
                    const Value& resolved, Problems& problems) {
  place_stages(e, document, problems);
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
  if (e.train.sum_gradients && e.loss->over_minibatch())
    problems.add(place_in(document, "train.gradient"),
                 "train.gradient is sum, the sum of the micro-batches' means, and loss.average is "
                 "tokens, one mean over all tokens of the mini-batch; expected gradient: mean, or "
                 "average: samples");
  const bool list = document.find_path("pipeline.balance") != nullptr;
  try {
    e.layers = e.model->layers();
    if (!has_convolutions(e.layers) && e.layout.channels_last) e.layout.channels_last = false;
    e.measured_balance = balance.measured;
    std::vector<std::int64_t> cut = balanced(
        *e.model, e.layers, e.pipeline.stages, balance.rule,
        balance.layout.empty() ? balance.list : balance_of_layout(balance.layout, e.layers));
    if (!cut.empty()) e.layout = e.cut(std::move(cut));
  } catch (const Error& error) {
    problems.add(place_in(document, list ? "pipeline.balance" : "pipeline.stages"), error.message(),
                 error.kind());
  }
  check_first_weights(e, document, problems);
  check_named_layers(e, document, problems);
  check_groups(e, document, problems);
  check_perturbation(e, document, problems);
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
    const Schedule schedule = e.scheme->schedule(shape);
    check_slicing(e, schedule, document, problems);
    check_velocity(e, schedule, document, resolved, problems);
    check_predicted_decay(e, schedule, document, resolved, problems);
    check_shared_weights(e, document, resolved, problems);
    check_gradient_rules(e, document, problems);
    check_probes(e, document, resolved, problems);
    check_graphs(e, document, problems);
    find_delays(e, document, problems);
  } catch (const Error& error) {
    problems.add(place_of(document, error.message()), error.message(), error.kind());
  }
}

}  // namespace pipewright
