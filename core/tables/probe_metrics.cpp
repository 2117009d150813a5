// SPDX-License-Identifier: Apache-2.0
#include "core/tables/probe_metrics.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/tables/mean_difference.h"

namespace pipewright {
namespace {

constexpr std::string_view kPrefix = "probe.";

/// The stage in "[2]"; none if the text is something else.
std::optional<int> stage_in(std::string_view brackets) {
  if (brackets.size() < 3 || !brackets.starts_with('[') || !brackets.ends_with(']'))
    return std::nullopt;
  const auto stage = parsed<int>(brackets.substr(1, brackets.size() - 2));
  return stage && *stage >= 0 ? stage : std::nullopt;
}

/// Adds the mean of each epoch as a column. Epochs that were not evaluated get a row of their own.
void add_column(RunRecord& run, const std::string& name, const std::vector<ProbeValue>& values) {
  if (values.empty() || std::ranges::count(run.columns, name) > 0) return;
  if (run.columns.empty()) run.columns.emplace_back("epoch");
  const auto epoch_column = run.column("epoch");
  if (!epoch_column) return;
  std::map<int, std::vector<double>> of_epoch;
  for (const ProbeValue& each : values) of_epoch[each.epoch].push_back(each.value);
  run.columns.push_back(name);
  for (std::vector<double>& row : run.epochs) {
    const auto found = of_epoch.find(static_cast<int>(row.at(*epoch_column)));
    row.push_back(found == of_epoch.end() ? kNoNumber : moments_of(found->second).mean);
  }
}

}  // namespace

bool is_probe_metric(const std::string& name) {
  return name.starts_with(kPrefix);
}

std::optional<ProbeMetric> probe_metric(const std::string& name) {
  if (!is_probe_metric(name)) return std::nullopt;
  std::string rest = name.substr(kPrefix.size());
  ProbeMetric metric;
  if (const std::size_t bracket = rest.find('['); bracket != std::string::npos) {
    metric.stage = stage_in(std::string_view(rest).substr(bracket));
    if (!metric.stage) return std::nullopt;
    rest.resize(bracket);
  }
  const std::size_t dot = rest.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == rest.size()) return std::nullopt;
  metric.probe = rest.substr(0, dot);
  metric.quantity = rest.substr(dot + 1);
  return metric;
}

std::vector<ProbeValue> values_of(const ProbeMetric& metric, const std::vector<ProbeValue>& log,
                                  bool per_stage) {
  std::vector<ProbeValue> whole, stages;
  for (const ProbeValue& each : log) {
    if (each.probe != metric.probe || each.quantity != metric.quantity) continue;
    if (metric.stage && each.stage != metric.stage) continue;
    (each.stage ? stages : whole).push_back(each);
  }
  return whole.empty() || per_stage ? stages : whole;
}

void add_probe_columns(std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  if (std::ranges::none_of(names, is_probe_metric)) return;
  for (RunRecord& run : runs) try {
      const std::vector<ProbeValue> log = read_probe_log(run.folder);
      for (const std::string& name : names)
        if (const auto metric = probe_metric(name)) add_column(run, name, values_of(*metric, log));
    } catch (const Error& error) {
      run.state = "failed";
      run.error = error.what();
    }
}

std::vector<RunRecord> probe_columns_added(const std::vector<RunRecord>& runs,
                                           const std::vector<std::string>& names) {
  if (std::ranges::none_of(names, is_probe_metric)) return {};
  std::vector<RunRecord> added = runs;
  add_probe_columns(added, names);
  return added;
}

std::vector<std::string> probe_metric_names(const std::vector<RunRecord>& runs) {
  std::set<std::string> names;
  for (const RunRecord& run : runs) try {
      for (const ProbeValue& each : read_probe_log(run.folder))
        names.insert(concat(kPrefix, each.probe, ".", each.quantity));
    } catch (const Error&) {
      continue;
    }
  return {names.begin(), names.end()};
}

}  // namespace pipewright
