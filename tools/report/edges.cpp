// SPDX-License-Identifier: Apache-2.0
#include "tools/report/edges.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/reading.h"
#include "core/stability/stability_report.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostEdges = 24;  // settings whose edges are found; each takes milliseconds
constexpr std::size_t kMostLinesOfEdges = 8;

/// What decides the edges: all but the learning rate and what is not about updates.
std::string edge_key(Value document) {
  std::string key;
  if (Value* const optimizer = document.find("optimizer"))
    std::erase_if(optimizer->fields, [](const auto& field) { return field.first == "lr"; });
  for (const char* const part : {"optimizer", "scheme", "pipeline"})
    if (const Value* const value = document.find(part)) key += to_json(*value) + "\n";
  return key;
}

std::optional<StabilityReport> edges_of(const Value& document) {
  try {
    const std::optional<Dynamics> dynamics = dynamics_of(read_experiment(document));
    if (dynamics) return stability_report(*dynamics);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
  }
  return std::nullopt;
}

ChartLine line_of_edges(const StabilityReport& report, const std::string& name, std::size_t look) {
  ChartLine line{.name = name, .look = look};
  for (std::size_t k = 0; k < report.stages.size(); ++k)
    if (std::isfinite(report.stages[k].edge) && report.stages[k].edge > 0)
      line.points.push_back({static_cast<double>(k), report.stages[k].edge, 0, 1,
                             concat(name, ", delay ", report.stages[k].delay.forward)});
  return line;
}

/// The largest curvature of each stage that is stable at the run's learning rate.
std::vector<double> limits_of(const StabilityReport& report, const RunRecord& run) {
  const std::optional<Value> lr = run.config.find_path("optimizer.lr");
  const double rate = !lr                            ? 0
                      : lr->is(Value::Kind::Integer) ? static_cast<double>(lr->integer)
                                                     : lr->number;
  std::vector<double> limits;
  for (const StageStability& stage : report.stages)
    limits.push_back(rate > 0 ? stage.edge / rate : kNoNumber);
  return limits;
}

}  // namespace

void add_edges(Report& report) {
  std::map<std::string, std::optional<StabilityReport>> known;
  std::map<std::size_t, Chart> charts;  // by the number of stages
  for (const ReportSchedule& schedule : report.schedules)
    for (const std::size_t run : schedule.runs) {
      const RunConfig& config = report.runs[run].config;
      const std::string key = edge_key(config.of_any_seed());
      if (!known.contains(key)) {
        if (known.size() == kMostEdges) continue;
        const auto& edges = known[key] = edges_of(config.of_any_seed());
        if (!edges) continue;
        Chart& chart = charts[edges->stages.size()];
        if (chart.lines.size() < kMostLinesOfEdges)
          chart.lines.push_back(line_of_edges(*edges, schedule.title, chart.lines.size()));
      }
      if (const auto& edges = known[key]; edges && !edges->rule.preconditioned)
        report.limits[run] = limits_of(*edges, report.runs[run]);
    }
  for (auto& [stages, chart] : charts) {
    chart.title = concat(counted(stages, "stage"),
                         ": edge of stability, the largest stable learning rate × curvature");
    chart.x_label = "stage";
    chart.y_label = "learning rate × curvature";
    chart.log_y = true;
    for (std::size_t k = 0; k < stages; ++k) chart.x_names.push_back(std::to_string(k));
    if (!chart.empty()) report.edges.push_back(std::move(chart));
  }
}

}  // namespace pipewright
