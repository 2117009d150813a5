// SPDX-License-Identifier: Apache-2.0
#include "tools/report/charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/reading.h"
#include "core/stability/stability_report.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostEdges = 24;  // settings whose edges are found; each takes milliseconds
constexpr std::size_t kMostLinesOfEdges = 8;

/// Keys and texts of what decides the edges: no learning rate, and nothing that is not about
/// updates.
using EdgeSettings = std::map<std::string, std::string>;

EdgeSettings edge_settings(const Value& document) {
  EdgeSettings settings = option_texts(document);
  std::erase_if(settings, [](const auto& setting) {
    const std::string& key = setting.first;
    const bool decides = key.starts_with("optimizer.") || key.starts_with("scheme.") ||
                         key.starts_with("pipeline.") || key.starts_with("perturb.") ||
                         key == "train.sum_gradients";
    return !decides || key == "optimizer.lr";
  });
  return settings;
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

/// Settings with their edges, which are a line of a chart.
struct EdgeLine {
  const ReportSchedule* schedule;
  const EdgeSettings* settings;
  const StabilityReport* edges;
  std::string name;
};

/// Gives lines of one name the settings in which they differ, parts' names before their options.
void tell_apart(std::vector<EdgeLine>& lines) {
  std::set<std::pair<bool, std::string>> keys;
  for (const EdgeLine& line : lines)
    for (const auto& [key, text] : *line.settings) keys.emplace(!key.ends_with(".name"), key);
  for (const auto& [is_option, key] : keys) {
    const auto text_of = [&key = key](const EdgeLine& line) {
      const auto found = line.settings->find(key);
      return found == line.settings->end() ? std::string() : found->second;
    };
    std::map<std::string, std::set<std::string>> texts;
    for (const EdgeLine& line : lines) texts[line.name].insert(text_of(line));
    for (EdgeLine& line : lines)
      if (const std::string text = text_of(line); texts[line.name].size() > 1 && !text.empty())
        line.name += is_option ? concat(", ", key, " ", text) : concat(", ", text);
  }
}

Chart chart_of_edges(std::size_t stages, std::vector<EdgeLine> lines) {
  Chart chart{.title = concat(counted(stages, "stage"),
                              ": edge of stability, the largest stable learning rate × curvature"),
              .x_label = "stage",
              .y_label = "learning rate × curvature",
              .log_y = true};
  for (std::size_t k = 0; k < stages; ++k) chart.x_names.push_back(std::to_string(k));
  tell_apart(lines);
  const std::size_t shown = std::min(lines.size(), kMostLinesOfEdges);
  if (lines.size() > shown)
    chart.note = concat(counted(lines.size() - shown, "setting"),
                        " more would not be told apart and are left out.");
  lines.resize(shown);
  for (const EdgeLine& each : lines) {
    ChartLine line{.name = each.name, .series = each.schedule->series};
    for (std::size_t k = 0; k < stages; ++k) {
      const StageStability& stage = each.edges->stages[k];
      if (std::isfinite(stage.edge) && stage.edge > 0)
        line.points.push_back({static_cast<double>(k), stage.edge, 0, 1,
                               concat(each.name, ", delay ", stage.delay.forward)});
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

}  // namespace

void add_edges(Report& report) {
  std::map<EdgeSettings, std::optional<StabilityReport>> known;
  std::map<std::size_t, std::vector<EdgeLine>> lines;  // by the number of stages
  std::set<EdgeSettings> passed_over;
  for (const ReportSchedule& schedule : report.schedules)
    for (const std::size_t run : schedule.runs) {
      const Value& document = report.runs[run].config.of_any_seed();
      const EdgeSettings settings = edge_settings(document);
      if (!known.contains(settings) && known.size() == kMostEdges) {
        passed_over.insert(settings);
        continue;
      }
      const auto [found, added] = known.try_emplace(settings);
      if (added) found->second = edges_of(document);
      const std::optional<StabilityReport>& edges = found->second;
      if (!edges) continue;
      if (added)
        lines[edges->stages.size()].push_back({&schedule, &found->first, &*edges, schedule.title});
      if (edges->dynamics.rule.preconditioned) continue;
      for (const StageStability& stage : edges->stages)
        report.stage_edges[run].push_back(stage.edge);
    }
  for (auto& [stages, some] : lines)
    if (Chart chart = chart_of_edges(stages, std::move(some)); !chart.empty())
      report.edges.push_back(std::move(chart));
  const auto without =
      std::ranges::count_if(known, [](const auto& setting) { return !setting.second.has_value(); });
  if (without > 0)
    report.edges_notes.push_back(
        concat("No edge of stability is known of ", counted(without, "setting"),
               ": the optimizer is no linear recurrence, or the schedule is not periodic."));
  if (!passed_over.empty())
    report.edges_notes.push_back(
        concat("Edges of ", counted(passed_over.size(), "setting"),
               " more were not computed; `pipewright stability` prints those of any."));
}

}  // namespace pipewright
