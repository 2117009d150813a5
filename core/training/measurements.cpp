// SPDX-License-Identifier: Apache-2.0
#include "core/training/measurements.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/experiment/dynamics.h"
#include "core/records/probe_log.h"
#include "core/training/gathered.h"
#include "core/training/whole_model_probes.h"

namespace pipewright {
namespace {

/// Whether every layer's parameters are there.
bool has_all_layers(const Experiment& experiment, const TensorFile& weights) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : weights.tensors) names.insert(name);
  for (const LayerPtr& layer : experiment.layers)
    for (const ParameterSpec& spec : layer->parameters())
      if (!names.contains(parameter_name(*layer, spec.name))) return false;
  return true;
}

/// Rows "epoch,minibatch,stage,probe,quantity,value": the mini-batch counts from 0 within the
/// epoch, the stage is empty for the whole model, the value has 17 significant digits.
std::string probe_rows(const std::vector<ProbeRow>& rows, const std::vector<NamedProbe>& probes,
                       std::int64_t minibatches_per_epoch) {
  std::string text;
  for (const ProbeRow& row : rows) {
    text +=
        concat(row.minibatch / minibatches_per_epoch, ",", row.minibatch % minibatches_per_epoch,
               ",", row.stage < 0 ? std::string() : std::to_string(row.stage), ",",
               probes[static_cast<std::size_t>(row.probe)].name, ",", row.quantity, ",");
    append_number(text, row.value);
    text += '\n';
  }
  return text;
}

/// The rows as text, to bring them to another process.
std::string packed(const std::vector<ProbeRow>& rows) {
  std::string text;
  for (const ProbeRow& row : rows) {
    text += concat(row.minibatch, " ", row.stage, " ", row.probe, " ", row.quantity, " ");
    append_number(text, row.value);
    text += '\n';
  }
  return text;
}

/// The rows of such a text. Throws Error{Worker}.
std::vector<ProbeRow> unpacked(const std::string& bytes) {
  std::vector<ProbeRow> rows;
  std::istringstream text(bytes);
  for (std::string line; std::getline(text, line);) {
    ProbeRow row;
    std::istringstream fields(line);
    fields >> row.minibatch >> row.stage >> row.probe >> row.quantity >> row.value;
    if (!fields) throw Error(ErrorKind::Worker, "a worker has sent damaged rows of probes.csv");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Measurements::Measurements(const Plan& plan, Team& team,
                           const std::vector<std::unique_ptr<Stage>>& stages)
    : plan_(plan), team_(team), stages_(stages) {
  if (!plan.experiment->probes.empty())
    probes_.emplace(plan.experiment->probes, plan.training, plan.experiment->delays);
}

void Measurements::keep_rows(const std::filesystem::path& checkpoints, std::int64_t done) {
  if (probes_ && team_.first() && !rows_)
    rows_ = RowLog::begin(checkpoints, "probes", done, concat(kProbeHeader, "\n"));
}

void Measurements::go_on(const std::filesystem::path& checkpoints, const RowLogPart& part) {
  if (probes_ && team_.first() && !part.name.empty()) rows_ = RowLog::go_on(checkpoints, part);
}

void Measurements::try_out(std::int64_t done, Progress* progress) {
  if (!probes_) return;
  double bytes = 0;
  if (has_whole_model_probes(*plan_.experiment)) {
    const TensorFile weights = gathered_weights(plan_, team_, stages_);
    for (const auto& [name, tensor] : weights.tensors)
      bytes += static_cast<double>(tensor.nbytes());
    if (team_.first()) {
      try_whole_model_probes(plan_, weights);
      begin_watch();
    }
    team_.barrier();
  }
  if (progress == nullptr) return;
  for (const std::string& line : announcement(plan_, done, bytes)) progress->line(line);
}

/// Finds the edges of stability, if the experiment has any. Those of groups are of other curvature
/// than a stage's, which is measured.
void Measurements::begin_watch() {
  if (!plan_.experiment->optimizer->groups().empty()) return;
  try {
    if (const auto dynamics = dynamics_of(*plan_.experiment))
      edges_.emplace(stability_report(*dynamics), plan_.minibatches);
  } catch (const Error&) {  // the schedule is not periodic, so there is no limit to watch
  }
}

Observer* Measurements::begin(std::int64_t first) {
  if (!probes_) return nullptr;
  probes_->begin(first);
  return &*probes_;
}

void Measurements::finish(std::int64_t first, std::int64_t done, Progress* progress) {
  if (!probes_) return;
  measure_whole_model(first, done);
  watch_edges(progress);
  keep_found();
}

/// Collective: measures the whole model with the weights that the updates of measured mini-batches
/// have made. A mini-batch that some stage's updates have left out is not measured.
void Measurements::measure_whole_model(std::int64_t first, std::int64_t done) {
  std::vector<StageCopy> copies = probes_->take_copies();
  for (const std::int64_t minibatch : measured_minibatches(*plan_.experiment, first, done)) {
    const auto gathered = [&](NamedTensors StageCopy::*part) {
      return gathered_tensors(plan_, team_, [&](int stage) {
        for (StageCopy& copy : copies)
          if (copy.minibatch == minibatch && copy.stage == stage) return std::move(copy.*part);
        return NamedTensors();
      });
    };
    const TensorFile weights = gathered(&StageCopy::state),
                     divisors = gathered(&StageCopy::divisors);
    if (team_.first() && has_all_layers(*plan_.experiment, weights))
      std::ranges::move(measured_whole(plan_, weights, divisors, minibatch, whole_costs_),
                        std::back_inserter(whole_));
    team_.barrier();
  }
}

/// Holds the curvature that has just been measured against the edges of stability, and warns.
void Measurements::watch_edges(Progress* progress) {
  if (!edges_) return;
  const Experiment& e = *plan_.experiment;
  const bool preconditioned = e.optimizer->linear()->preconditioned;
  for (const ProbeRow& row : whole_)
    if (row.stage >= 0 && row.quantity == (preconditioned ? "preconditioned" : "largest"))
      edges_->measured(row.stage, row.value, plan_.learning_rate(row.minibatch), row.minibatch + 1);
  for (std::string warning = edges_->warning(); !warning.empty(); warning = edges_->warning())
    if (progress != nullptr) progress->line(warning);
}

/// Collective: collects what the probes of all processes have found since the last call.
void Measurements::keep_found() {
  std::vector<ProbeRow> rows = probes_->take();
  std::ranges::move(std::exchange(whole_, {}), std::back_inserter(rows));
  if (team_.size() > 1) {
    const auto all = team_.gather(packed(rows));
    rows.clear();
    for (const std::string& some : all)
      for (ProbeRow& row : unpacked(some)) rows.push_back(std::move(row));
  }
  sort_rows(rows);
  if (rows_) rows_->append(probe_rows(rows, plan_.experiment->probes, plan_.minibatches));
  if (events_ == nullptr) return;
  for (const ProbeRow& row : rows)
    events_->probe(row.minibatch,
                   plan_.experiment->probes[static_cast<std::size_t>(row.probe)].name, row.quantity,
                   row.stage < 0 ? std::nullopt : std::optional(row.stage), row.value);
}

std::string Measurements::farthest_past_edge() const {
  return edges_ ? edges_->farthest() : "";
}

void Measurements::tell_costs(double seconds, Progress* progress) {
  if (!probes_) return;
  const std::vector<NamedProbe>& probes = plan_.experiment->probes;
  std::vector<double> counts(2 * probes.size());  // seconds and measurements of each probe
  for (const std::vector<Probes::Cost>& costs : {probes_->costs(), whole_costs_})
    for (std::size_t i = 0; i < costs.size(); ++i) {
      counts[2 * i] += costs[i].seconds;
      counts[2 * i + 1] += static_cast<double>(costs[i].measurements);
    }
  if (team_.size() > 1) team_.sum(counts);
  if (progress == nullptr) return;
  const bool serial = plan_.experiment->pipeline.execution == Execution::Serial;
  const double all = seconds * (serial ? 1 : plan_.training.schedule.shape.workers());
  for (std::size_t i = 0; i < probes.size(); ++i) {
    char text[96];
    std::snprintf(text, sizeof text, "%.3g s for %.0f measurements, %.2g %% of the training",
                  counts[2 * i], counts[2 * i + 1], 100 * counts[2 * i] / all);
    progress->line(concat("probe ", probes[i].name, ": ", text));
  }
}

}  // namespace pipewright
