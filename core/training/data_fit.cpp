// SPDX-License-Identifier: Apache-2.0
#include "core/training/data_fit.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string task_text(Task task, bool tokens) {
  switch (task) {
    case Task::Classify: return tokens ? "a class for a text" : "a class for a sample";
    case Task::Continue: return "the next token at every place";
    case Task::Translate: return "a translation";
    case Task::Minimize: return "the loss of a sample itself";
  }
  PIPEWRIGHT_CHECK(false, "no such task");
}

/// Checks that the data set and the model have the same task and agree on whether inputs are
/// tokens.
void check_task(const Experiment& e) {
  const Dataset& dataset = *e.dataset;
  const Model& model = *e.model;
  const bool given = dataset.vocabulary() > 0, wanted = model.vocabulary() > 0;
  if (given != wanted || dataset.task() != model.task())
    throw Error(ErrorKind::Experiment,
                concat("the model makes ", task_text(model.task(), wanted), ", the data set wants ",
                       task_text(dataset.task(), given),
                       "; choose another model or data set (pipewright list models)"),
                e.where("model"));
}

void check_loss(const Experiment& e) {
  const Task task = e.model->task();
  if (e.loss->fits(task)) return;
  throw Error(ErrorKind::Experiment,
              task == Task::Minimize
                  ? "the model's output is the loss itself; expected loss: {name: output}"
                  : "the loss output is for models whose output is the loss itself, such as "
                    "quadratic; expected loss: {name: cross_entropy}",
              e.where("loss"));
}

void check_tokens(const Experiment& e) {
  const Dataset& dataset = *e.dataset;
  const Model& model = *e.model;
  const std::int64_t given = dataset.sample_shape()[0], most = model.input_shape()[0];
  if (given > most)
    throw Error(
        ErrorKind::Experiment,
        concat("the data set has samples of up to ", counted(given, "token"), ", the model takes ",
               most, "; change one of them (pipewright describe model …)"),
        e.where("model"));
  if (dataset.vocabulary() > model.vocabulary() || dataset.classes() > model.classes())
    throw Error(ErrorKind::Experiment,
                concat("the data set has ", dataset.vocabulary(), " tokens and ", dataset.classes(),
                       " classes, the model ", model.vocabulary(), " and ", model.classes()),
                e.where("model"));
}

void check_metrics(const Experiment& e) {
  if (e.model->encoder_layers() == 0 && std::ranges::count(e.metric_names, kBleu) > 0)
    throw Error(ErrorKind::Experiment,
                "the metric bleu rates translations, which this model does not make; choose "
                "another metric or model (pipewright list models)",
                e.where("metrics"));
}

}  // namespace

void check_fit(const Experiment& e) {
  const Dataset& dataset = *e.dataset;
  const Model& model = *e.model;
  check_task(e);
  check_loss(e);
  check_metrics(e);
  if (model.vocabulary() > 0) {
    check_tokens(e);
    return;
  }
  const auto given = dataset.sample_shape(), wanted = model.input_shape();
  if (model.flattens() ? elements(given) != elements(wanted) : given != wanted)
    throw Error(ErrorKind::Experiment,
                concat("the model takes samples of ", shape_text(wanted), ", the data set has ",
                       shape_text(given),
                       "; change the model's input options (pipewright describe model …)"),
                e.where("model"));
  if (dataset.classes() > model.classes())
    throw Error(ErrorKind::Experiment,
                concat("the data set has ", counted(dataset.classes(), "class"),
                       ", the model only ", counted(model.classes(), "output")),
                e.where("model"));
}

}  // namespace pipewright
