// SPDX-License-Identifier: Apache-2.0
#include "core/training/data_fit.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <numeric>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/measuring/boundaries.h"
#include "core/measuring/made_up_batch.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Throws what is wrong between model and data set at the first of these options of the model that
/// the experiment gives; without them the model would take their values from the data set. Where
/// none is given, `otherwise` says what is expected.
[[noreturn]] void refuse_model(const Experiment& e, std::initializer_list<const char*> options,
                               const std::string& what, const std::string& otherwise) {
  const Value* const model = e.given.find("model");
  std::vector<std::string> given;
  for (const char* option : options)
    if (model != nullptr && model->find(option) != nullptr)
      given.push_back(concat("model.", option));
  const std::string advice = given.empty()
                                 ? otherwise
                                 : concat("leave out ", join(given, " and "), ", which then ",
                                          given.size() == 1 ? "fits" : "fit", " the data set");
  throw experiment_error(e.where(given.empty() ? "model" : given.front()), what, "; ", advice);
}

/// Whether targets of that task are compared with the outputs of a model of Task::Classify as they
/// are.
bool of_outputs(Task task) {
  return task == Task::Regress || task == Task::Label;
}

std::string task_text(Task task, bool tokens) {
  switch (task) {
    case Task::Regress: return "real numbers for a sample";
    case Task::Label: return "labels of a sample";
    case Task::Classify: return tokens ? "a class for a text" : "a class for a sample";
    case Task::Continue: return "the next token at every place";
    case Task::Translate: return "a translation";
    case Task::Minimize: return "the loss of a sample itself";
  }
  PIPEWRIGHT_CHECK(false, "no such task");
}

constexpr const char* kTokensOfData = " (int64 inputs are tokens; store numbers as floating-point)";

/// Checks that the data set and the model have the same task and agree on whether inputs are
/// tokens.
void check_task(const Experiment& e, const Dataset& dataset) {
  const Model& model = *e.model;
  const bool given = dataset.vocabulary() > 0, wanted = model.vocabulary() > 0;
  const Task task = of_outputs(dataset.task()) ? Task::Classify : dataset.task();
  if (given != wanted || task != model.task())
    throw experiment_error(e.where("model"), "the model makes ", task_text(model.task(), wanted),
                           ", the data set wants ", task_text(dataset.task(), given),
                           given && !wanted ? kTokensOfData : "",
                           "; choose another model or data set (pipewright list models)");
}

/// Checks that the data set gives the inputs that the model takes by name.
void check_inputs(const Experiment& e, const Dataset& dataset) {
  std::vector<std::string> wanted;
  for (const NamedInput& input : e.model->named_inputs()) wanted.push_back(input.name);
  if (dataset.input_names() == wanted) return;
  throw experiment_error(
      e.where("dataset"), "the model takes the inputs '", join(wanted, "', '"),
      "', this data set gives one input; expected dataset: {name: tensors} with a tensor for each");
}

void check_loss(const Experiment& e, const Dataset& dataset) {
  const Task task = of_outputs(dataset.task()) ? dataset.task() : e.model->task();
  if (e.loss->compares_with() == Task::Label &&
      (!e.loss->fits(task) || (task == Task::Classify && dataset.classes() > 2)))
    throw experiment_error(
        e.where("loss"),
        "the loss binary_cross_entropy compares with labels of 0 and 1, this data set has ",
        counted(dataset.classes(), "class"), "; expected loss: {name: cross_entropy}");
  if (e.loss->fits(task)) return;
  if (e.loss->fits(Task::Regress))
    throw experiment_error(e.where("loss"),
                           "the losses mse and l1 compare with real-valued targets, those of this "
                           "data set are classes; expected loss: {name: cross_entropy}");
  throw experiment_error(
      e.where("loss"), task == Task::Minimize
                           ? "the model's output is the loss itself; expected loss: {name: output}"
                           : "the loss output is for models whose output is the loss itself, such "
                             "as quadratic; expected loss: {name: cross_entropy}");
}

/// Checks that the model has an output for each target that is a real number.
void check_targets(const Experiment& e, const Dataset& dataset) {
  const std::int64_t targets = dataset.classes(), outputs = e.model->classes();
  if (dataset.task() != Task::Regress || targets == outputs) return;
  refuse_model(e, {"classes", "widths"},
               concat("the data set has ", counted(targets, "real-valued target"),
                      " for a sample, the model ", counted(outputs, "output")),
               "expected as many outputs as targets");
}

void check_tokens(const Experiment& e, const Dataset& dataset) {
  const Model& model = *e.model;
  const std::int64_t given = dataset.sample_shape()[0], most = model.input_shape()[0];
  if (given < most && !model.takes_shorter_samples())
    throw experiment_error(e.where("dataset"), "the data set has samples of ",
                           counted(given, "token"), ", the model takes exactly ", most,
                           "; change one of them (pipewright describe dataset …)");
  if (given > most)
    refuse_model(e, {"tokens", "input"},
                 concat("the data set has samples of up to ", counted(given, "token"),
                        ", the model takes ", most),
                 "change one of them (pipewright describe model …)");
  const bool more_tokens = dataset.vocabulary() > model.vocabulary(),
             more_classes = dataset.classes() > model.classes();
  std::vector<std::string> options;  // those that the model has
  const auto propose = [&](const char* option, std::int64_t value) {
    if (e.resolved.find_path(option) != nullptr) options.push_back(concat(option, ": ", value));
  };
  if (more_tokens) propose("model.vocabulary", dataset.vocabulary());
  if (more_classes) propose("model.classes", dataset.classes());
  if (more_tokens || more_classes)
    refuse_model(
        e, {"vocabulary", "classes"},
        concat("the data set has ", dataset.vocabulary(), " tokens and ", dataset.classes(),
               " classes, the model ", model.vocabulary(), " and ", model.classes()),
        concat("expected a model of at least as many",
               options.empty() ? std::string() : concat(", as with ", join(options, " and "))));
}

/// Refuses samples that slices cannot divide.
void check_sliced_tokens(const Experiment& e, const Dataset& dataset) {
  const int slices = e.pipeline.slices;
  const std::int64_t tokens = dataset.sample_shape()[0];
  if (slices == 1 || tokens % slices == 0) return;
  throw experiment_error(e.where("pipeline.slices"), "pipeline.slices is ", slices,
                         ", but a sample of this data set has ", counted(tokens, "token"),
                         "; expected a divisor of ", tokens);
}

/// Refuses metrics of another task; accuracy, which is always first, only where it is asked for.
void check_metrics_of_task(const Experiment& e, const Dataset& dataset) {
  const bool real = dataset.task() == Task::Regress,
             labels = e.loss->compares_with() == Task::Label;
  const Task task = labels ? Task::Label : dataset.task();
  const Value* const given = e.given.find("metrics");
  for (std::size_t i = 0; i < e.metrics.size(); ++i) {
    const std::string& name = e.metric_names[i];
    const bool asked = given != nullptr && std::ranges::count(given->items, Value::of(name)) > 0;
    if (!e.metrics[i] || !asked || e.metrics[i]->fits(task)) continue;
    throw experiment_error(
        e.where("metrics"), "the metric ", name, " rates ",
        real ? "classes, the targets of this data set are real numbers; expected mae"
        : labels && e.metrics[i]->fits(Task::Classify)
            ? "classes, the loss is one of labels; expected accuracy or matthews"
            : "real numbers, the targets of this data set are classes; expected another metric");
  }
}

/// Refuses metrics of two classes where there are more.
void check_metrics_of_classes(const Experiment& e, const Dataset& dataset) {
  if (of_outputs(dataset.task()) || e.loss->compares_with() == Task::Label) return;
  for (std::size_t i = 0; i < e.metrics.size(); ++i)
    if (e.metrics[i] && dataset.classes() > e.metrics[i]->most_classes())
      throw experiment_error(e.where("metrics"), "the metric ", e.metric_names[i], " rates ",
                             counted(e.metrics[i]->most_classes(), "class"), ", this data set has ",
                             dataset.classes(), "; expected accuracy");
}

void check_metrics(const Experiment& e, const Dataset& dataset) {
  check_metrics_of_task(e, dataset);
  check_metrics_of_classes(e, dataset);
  if (e.model->encoder_layers() == 0 && std::ranges::count(e.metric_names, kBleu) > 0)
    throw experiment_error(e.where("metrics"),
                           "the metric bleu rates translations, which this model does not make; "
                           "choose another metric or model (pipewright list models)");
}

/// Checks that the model's output has the shape that the loss needs, without memory.
void check_output(const Experiment& e, const Dataset& dataset) {
  constexpr std::array<std::int64_t, 2> kSamples{0, 0};
  const auto meta = at::TensorOptions(e.train.precision.values).device(at::kMeta);
  Batch batch = made_up_batch(*e.model, kSamples.size(), meta, dataset.task() == Task::Regress);
  if (dataset.task() == Task::Label)
    batch.y = dataset.batch(Split::Train, kSamples, nullptr).y.to(at::kMeta);
  Tensors outputs;
  try {
    outputs = outputs_on_meta(e, batch.x);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // the layer needs values, or it is broken: training says where
    return;
  }
  try {
    (*e.loss)(outputs[0], batch.y);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), e.where("loss"));
  } catch (const std::exception&) {  // the loss needs values, as l1 does, or it is broken
  }
}

/// Of samples from the user's arrays; data sets of images have their channels first.
bool channels_are_last(const Experiment& e, const std::vector<std::int64_t>& given,
                       const std::vector<std::int64_t>& wanted) {
  const Value* const name = e.resolved.find_path("dataset.name");
  if (name == nullptr || name->text != "tensors") return false;
  const bool channels = given[2] == wanted[0] || given[2] == 1 || given[2] == 3;
  return channels && given[0] > given[2];
}

void check_samples(const Experiment& e, const Dataset& dataset) {
  const Model& model = *e.model;
  check_inputs(e, dataset);
  check_task(e, dataset);
  check_loss(e, dataset);
  check_metrics(e, dataset);
  check_targets(e, dataset);
  if (model.vocabulary() > 0) {
    check_tokens(e, dataset);
    check_sliced_tokens(e, dataset);
    return;
  }
  const auto given = dataset.sample_shape(), wanted = model.input_shape();
  const bool fits = model.flattens() ? elements(given) == elements(wanted) : given == wanted;
  const bool images = given.size() == 3 && wanted.size() == 3;
  if (!fits && images && channels_are_last(e, given, wanted))
    throw experiment_error(e.where("dataset"), "the model takes samples of ", shape_text(wanted),
                           ", the data set has ", shape_text(given),
                           ", whose channels seem to be last; expected ",
                           shape_text(std::vector{given[2], given[0], given[1]}),
                           ", which x.transpose(0, 3, 1, 2) makes of them");
  if (!fits)
    refuse_model(e, {"input", "channels", "size", "widths"},
                 concat("the model takes samples of ", shape_text(wanted), ", the data set has ",
                        shape_text(given)),
                 "change the model's input options (pipewright describe model …)");
  if (e.loss->compares_with() != Task::Label && dataset.classes() > model.classes())
    refuse_model(e, {"classes", "widths"},
                 concat("the data set has ", counted(dataset.classes(), "class"),
                        ", the model only ", counted(model.classes(), "output")),
                 concat("expected at least ", dataset.classes(), " outputs"));
}

}  // namespace

void check_fit(const Experiment& e, const Dataset& dataset) {
  check_samples(e, dataset);
  check_output(e, dataset);
}

}  // namespace pipewright
