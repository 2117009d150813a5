// SPDX-License-Identifier: Apache-2.0
#include "core/tables/samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

/// A metric over epochs, from the columns of epochs.csv. x counts epochs from 1.
std::vector<Sample> samples_of_epochs(const RunRecord& run, const std::string& metric) {
  const auto column = run.column(metric), epoch = run.column("epoch");
  std::vector<Sample> samples;
  if (!column || !epoch) return samples;
  for (const std::vector<double>& row : run.epochs)
    if (!std::isnan(row.at(*column))) samples.push_back({row.at(*epoch) + 1, row.at(*column), {}});
  return samples;
}

/// Mini-batches before each epoch of the run. Throws Error{Data} if that cannot be known.
int epoch_length(const RunRecord& run, const std::vector<ProbeValue>& values) {
  const auto later = [](const ProbeValue& each) { return each.epoch > 0; };
  if (std::ranges::none_of(values, later)) return 0;
  if (const auto count = minibatches_per_epoch(run.folder)) return *count;
  throw Error(ErrorKind::Data,
              "is not there; plot with x: minibatch counts the mini-batches of an epoch in it "
              "(output.steps: true writes it)",
              (run.folder / "steps.csv").string());
}

/// Only the values of the last epoch in which something was measured.
std::vector<ProbeValue> of_last_epoch(std::vector<ProbeValue> values) {
  int last = 0;
  for (const ProbeValue& each : values) last = std::max(last, each.epoch);
  std::erase_if(values, [&](const ProbeValue& each) { return each.epoch != last; });
  return values;
}

/// A probe's values as they stand in probes.csv, averaged where several share x and line.
std::vector<Sample> samples_of_log(const RunRecord& run, const PlotSpec& spec, const Axis& axis) {
  const bool over_stages = spec.x.name == "stage", per_line = spec.line_per_stage();
  std::vector<ProbeValue> values = values_of(*probe_metric(spec.metric.name),
                                             read_probe_log(run.folder), over_stages || per_line);
  if (over_stages || spec.over_key()) values = of_last_epoch(std::move(values));
  const int length = spec.x.name == "minibatch" ? epoch_length(run, values) : 0;
  const auto x_of = [&](const ProbeValue& each) {
    if (over_stages) return static_cast<double>(*each.stage);
    if (spec.x.name == "minibatch")
      return static_cast<double>(each.epoch) * length + each.minibatch;
    return spec.over_key() ? axis.position(key_text(run, spec.x.name)) : each.epoch + 1.;
  };
  std::map<std::pair<int, double>, std::vector<double>> grouped;  // line's stage or −1, and x
  for (const ProbeValue& each : values)
    grouped[{per_line ? *each.stage : -1, x_of(each)}].push_back(each.value);
  std::vector<Sample> samples;
  for (const auto& [where, all] : grouped)
    samples.push_back({where.second, moments_of(all).mean,
                       where.first < 0 ? std::string() : concat("stage ", where.first)});
  return samples;
}

/// What train.evaluate has found, over mini-batches, tokens or modelled hours.
std::vector<Sample> samples_of_evaluations(const RunRecord& run, const PlotSpec& spec) {
  const std::optional<double> pace = modelled_pace(run);  // samples per second
  if (spec.in_hours() && !pace) return {};
  const char* const column = spec.in_hours()              ? "samples"
                             : spec.x.name == "minibatch" ? "minibatches"
                                                          : "tokens";
  std::vector<Sample> samples;
  for (const EvaluationPoint& point : evaluations_of(run, column, spec.metric.name))
    samples.push_back({spec.in_hours() ? point.at / *pace / 3600 : point.at, point.value, {}});
  return samples;
}

}  // namespace

double Axis::position(const std::string& text) const {
  if (names.empty()) return parsed<double>(text).value_or(kNoNumber);
  return static_cast<double>(std::ranges::find(names, text) - names.begin());
}

Axis key_axis(const TableKey& key, const char* what, bool log, const std::vector<RunRecord>& runs,
              Problems& problems) {
  Axis axis{.label = key.name, .log = log, .keyed = true};
  bool numbers = true;
  for (const RunRecord& run : runs) {
    const std::string text = key_text(run, key.name);
    const auto number = parsed<double>(text);
    numbers = numbers && number;
    if (std::ranges::count(axis.names, text) == 0) axis.names.push_back(text);
    if (!log || (number && *number > 0)) continue;
    problems.add(key.place, concat(std::string_view(what), ": a run has ", key.name, " ", text,
                                   ", which has no place on a logarithmic axis; leave ",
                                   std::string_view(what).substr(5), " out of plot.log"));
    break;
  }
  if (numbers) axis.names.clear();
  return axis;
}

std::vector<Sample> samples_of(const RunRecord& run, const PlotSpec& spec, const Axis& axis) {
  const std::string& x = spec.x.name;
  if (spec.over_key() && !run.done() && !is_modelled(spec.metric.name)) return {};
  if (spec.over_evaluations()) return samples_of_evaluations(run, spec);
  if (spec.line_per_stage() || x == "minibatch" || x == "stage")
    return samples_of_log(run, spec, axis);
  if (!spec.over_key()) return samples_of_epochs(run, spec.metric.name);
  const auto value = metric_of(run, spec.metric.name, spec.epoch);
  if (!value) return {};
  return {{axis.position(key_text(run, x)), *value, {}}};
}

}  // namespace pipewright
