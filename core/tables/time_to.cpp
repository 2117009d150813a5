// SPDX-License-Identifier: Apache-2.0
#include "core/tables/time_to.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/tables/probe_metrics.h"

namespace pipewright {
namespace {

/// Adds what the run's evaluations say of the loss.
void add_times(RunRecord& run, double loss) {
  const auto add = [&](std::string_view name, const char* column, double scale) {
    if (const auto at = reached_at(evaluations_of(run, column, "test_loss"), loss))
      run.times_to.emplace_back(name, scale * *at);
  };
  add(kTimesTo[0], "minibatches", 1);
  add(kTimesTo[1], "tokens", 1);
  if (const auto pace = modelled_pace(run)) add(kTimesTo[2], "samples", 1 / *pace);
}

}  // namespace

bool is_time_to(const std::string& metric) {
  return std::ranges::count(kTimesTo, metric) > 0;
}

std::optional<double> modelled_pace(const RunRecord& run) {
  const auto pace = std::ranges::find(run.modelled, "modelled_samples_per_second",
                                      &std::pair<std::string, double>::first);
  if (pace == run.modelled.end()) return std::nullopt;
  return pace->second;
}

std::vector<EvaluationPoint> evaluations_of(const RunRecord& run, const std::string& at,
                                            const std::string& value) {
  std::vector<EvaluationPoint> points;
  const auto x = run.evaluations.find(at), y = run.evaluations.find(value);
  if (x == run.evaluations.end() || y == run.evaluations.end()) return points;
  for (std::size_t i = 0; i < x->second.size(); ++i)
    if (!std::isnan(x->second[i]) && !std::isnan(y->second[i]))
      points.push_back({x->second[i], y->second[i]});
  return points;
}

std::optional<double> reached_at(const std::vector<EvaluationPoint>& points, double loss) {
  if (points.empty()) return std::nullopt;
  const auto there = std::ranges::find_if(
      points, [&](const EvaluationPoint& point) { return point.value <= loss; });
  if (there == points.end()) return std::numeric_limits<double>::infinity();
  if (there == points.begin()) return there->at;
  const EvaluationPoint& before = *std::prev(there);
  return before.at +
         (there->at - before.at) * (before.value - loss) / (before.value - there->value);
}

std::vector<RunRecord> times_to_added(std::vector<RunRecord> runs,
                                      const std::vector<std::string>& names, double loss) {
  if (std::ranges::none_of(names, is_time_to)) return {};
  for (RunRecord& run : runs) {
    run.times_to.clear();
    if (run.done()) add_times(run, loss);
  }
  return runs;
}

std::vector<RunRecord> derived_added(const std::vector<RunRecord>& runs,
                                     const std::vector<std::string>& names, double loss) {
  std::vector<RunRecord> with_probes = probe_columns_added(runs, names);
  std::vector<RunRecord> with_times =
      times_to_added(with_probes.empty() ? runs : with_probes, names, loss);
  return with_times.empty() ? with_probes : with_times;
}

}  // namespace pipewright
