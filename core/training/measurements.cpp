// SPDX-License-Identifier: Apache-2.0
#include "core/training/measurements.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/experiment/dynamics.h"
#include "core/training/drained_probes.h"
#include "core/training/gathered.h"
#include "core/training/past.h"
#include "core/training/probe_rows.h"

namespace pipewright {

Measurements::Measurements(const Plan& plan, Team& team,
                           const std::vector<std::unique_ptr<Stage>>& stages)
    : plan_(plan), team_(team), stages_(stages) {
  if (!plan.experiment->probes.empty()) probes_.emplace(plan.experiment->probes, plan.training);
}

void Measurements::keep_rows(const std::filesystem::path& checkpoints, std::int64_t done) {
  if (probes_ && team_.first() && !rows_) rows_ = begin_probes(checkpoints, done);
}

void Measurements::go_on(const std::filesystem::path& checkpoints, const RowLogPart& part) {
  if (probes_ && team_.first() && !part.name.empty()) rows_ = RowLog::go_on(checkpoints, part);
}

void Measurements::try_out() {
  if (!has_drained_probes(*plan_.experiment)) return;
  const TensorFile weights = gathered_weights(plan_, team_, stages_);
  if (team_.first()) {
    try_drained_probes(plan_, weights);
    begin_watch();
  }
  team_.barrier();
}

/// Finds the edges of stability, if the experiment has any.
void Measurements::begin_watch() {
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
  if (drained_probe_is_due(*plan_.experiment, first, done)) {
    measure_drained(first, done);
    watch_edges(done, progress);
  }
  keep_found();
}

/// Collective: measures the whole model after the mini-batches from `first` on.
void Measurements::measure_drained(std::int64_t first, std::int64_t done) {
  const TensorFile weights = gathered_weights(plan_, team_, stages_),
                   divisors = gathered_preconditioner(plan_, team_, stages_);
  if (team_.first())
    drained_ = measured_where_drained(plan_, weights, divisors, first, done, drained_costs_);
  team_.barrier();
}

/// Holds the curvature that has just been measured against the edges of stability, and warns.
void Measurements::watch_edges(std::int64_t done, Progress* progress) {
  if (!edges_) return;
  const Experiment& e = *plan_.experiment;
  const bool preconditioned = e.optimizer->linear()->preconditioned;
  const double lr = learning_rate_at(e, plan_.minibatches, e.train.epochs, done - 1);
  for (const ProbeRow& row : drained_)
    if (row.stage >= 0 && row.quantity == (preconditioned ? "preconditioned" : "largest"))
      edges_->measured(row.stage, row.value, lr, done);
  if (const std::string warning = edges_->warning(); !warning.empty() && progress != nullptr)
    progress->line(warning);
}

/// Collective: collects what the probes of all processes have found since the last call.
void Measurements::keep_found() {
  std::vector<ProbeRow> rows = probes_->take();
  std::ranges::move(std::exchange(drained_, {}), std::back_inserter(rows));
  if (team_.size() > 1) {
    const auto all = team_.gather(packed(rows));
    rows.clear();
    for (const std::string& some : all)
      for (ProbeRow& row : unpacked(some)) rows.push_back(std::move(row));
  }
  sort_rows(rows);
  if (rows_) rows_->append(probe_rows(rows, plan_.experiment->probes, plan_.minibatches));
}

std::string Measurements::farthest_past_edge() const {
  return edges_ ? edges_->farthest() : "";
}

void Measurements::tell_costs(double seconds, Progress* progress) {
  if (!probes_) return;
  const std::vector<NamedProbe>& probes = plan_.experiment->probes;
  std::vector<double> counts(2 * probes.size());  // seconds and measurements of each probe
  for (const std::vector<Probes::Cost>& costs : {probes_->costs(), drained_costs_})
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
