// SPDX-License-Identifier: Apache-2.0
// What probes measured of each stage over the training: the gap between the weights that a gradient
// was computed with and those it changed, what codecs lose on edges, and sharpness beside its
// limit.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/page/sections.h"
#include "core/records/probe_log.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostProbeCharts = 24;

struct StageQuantity {
  const char* probe;
  const char* quantity;
  const char* what;
};

constexpr std::array kStageQuantities{
    StageQuantity{
        "weight_gap", "forward_relative",
        "Weight gap of the forward, in updates: how far its weights were from those that the "
        "gradient changed"},
    StageQuantity{"weight_gap", "backward_relative", "Weight gap of the backward, in updates"},
    StageQuantity{"prediction_error", "relative",
                  "Error of predicted weights, as a part of that without a prediction"},
    StageQuantity{"edge_error", "activation",
                  "What the codec loses of activations, edge before the stage"},
    StageQuantity{"edge_error", "gradient",
                  "What the codec loses of gradients, edge behind the stage"},
    StageQuantity{"sharpness", "largest",
                  "Sharpness: the largest eigenvalue of the stage’s Hessian, which the edge of "
                  "stability limits"}};

/// What a run's sharpness is held against: a stage's edge over the learning rate.
struct Limits {
  std::vector<double> edges;  ///< of each stage, learning rate × curvature; empty: not known
  std::vector<double> rates;  ///< with which each epoch began

  /// The curvature up to which a stage is stable in an epoch; NaN or infinite if there is none.
  double at(int stage, int epoch) const {
    const auto s = static_cast<std::size_t>(stage), e = static_cast<std::size_t>(epoch);
    if (s >= edges.size() || e >= rates.size()) return kNoNumber;
    return edges[s] / rates[e];
  }
};

using Moment = std::pair<int, int>;  // epoch, mini-batch

/// The values of a quantity in their order, by stage.
std::map<int, std::vector<ProbeValue>> values_by_stage(const std::vector<ProbeValue>& log,
                                                       const StageQuantity& quantity) {
  std::map<int, std::vector<ProbeValue>> stages;
  for (const ProbeValue& each : log)
    if (each.stage && each.probe == quantity.probe && each.quantity == quantity.quantity &&
        std::isfinite(each.value))
      stages[*each.stage].push_back(each);
  return stages;
}

/// The moments of all values, numbered from 1.
std::map<Moment, int> numbered_moments(const std::map<int, std::vector<ProbeValue>>& stages) {
  std::map<Moment, int> numbers;
  for (const auto& [stage, values] : stages)
    for (const ProbeValue& each : values) numbers[{each.epoch, each.minibatch}] = 0;
  int next = 1;
  for (auto& [moment, number] : numbers) number = next++;
  return numbers;
}

/// The limits that a stage's values are held against: a line as far as it is near the values, of
/// which `largest` is one. Writes its range into the legend of the stage's own line.
ChartLine limit_line(const std::vector<ProbeValue>& values, const Limits& limits, double largest,
                     ChartLine& own) {
  ChartLine line{
      .name = "limit of " + own.name, .kind = ChartLine::Kind::Published, .look = own.look};
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double limit = limits.at(*values[i].stage, values[i].epoch);
    if (!std::isfinite(limit)) continue;
    least = std::min(least, limit);
    most = std::max(most, limit);
    if (limit <= 1.5 * largest) line.points.push_back({own.points[i].x, limit, 0, 1, {}});
  }
  const std::string low = rounded_text(least, 3), high = rounded_text(most, 3);
  if (least <= most) own.runs = concat("limit ", low, low == high ? "" : concat("–", high));
  return line;
}

/// A line for each stage of a run.
Chart quantity_chart(const std::string& run, const std::map<int, std::vector<ProbeValue>>& stages,
                     const StageQuantity& quantity, const Limits& limits) {
  Chart chart{
      .title = run,
      .x_label = "measurement",
      .y_label = concat(std::string_view(quantity.probe), ".", std::string_view(quantity.quantity)),
      .from_zero = true};
  const std::map<Moment, int> numbers = numbered_moments(stages);
  double largest = 0;
  for (const auto& [stage, values] : stages)
    for (const ProbeValue& each : values) largest = std::max(largest, each.value);
  std::vector<ChartLine> beside;
  for (const auto& [stage, values] : stages) {
    ChartLine line{.name = concat("stage ", stage), .look = static_cast<std::size_t>(stage)};
    for (const ProbeValue& each : values)
      line.points.push_back(
          {static_cast<double>(numbers.at({each.epoch, each.minibatch})), each.value, 0, 1,
           concat(line.name, ", epoch ", each.epoch + 1, ", mini-batch ", each.minibatch)});
    ChartLine limit = limit_line(values, limits, largest, line);
    for (ChartLine* const drawn : {&line, &limit}) drawn->points = thinned(drawn->points);
    chart.lines.push_back(std::move(line));
    if (!limit.points.empty()) beside.push_back(std::move(limit));
  }
  std::ranges::move(beside, std::back_inserter(chart.lines));
  return chart;
}

/// The setting of a run: all that varies but its seed, and its label, which may have the
/// seed in it. Runs of no sweep have their label alone.
std::string setting_of(const RunRecord& run) {
  if (run.varied.fields.empty()) return run.label;
  std::string setting;
  for (const auto& [key, value] : run.varied.fields)
    if (key != "train.seed" && key != "label") setting += concat(key, " ", to_json(value), "\n");
  return setting;
}

/// The logs of the first run of each setting that has measured something.
std::map<std::size_t, std::vector<ProbeValue>> logs_of(const Report& report) {
  std::map<std::size_t, std::vector<ProbeValue>> logs;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunRecord& run = report.runs[i];
    const std::string setting = setting_of(run);
    if (seen.contains(setting)) continue;
    try {
      std::vector<ProbeValue> log = read_probe_log(run.folder);
      if (log.empty()) continue;
      seen.insert(setting);
      logs.emplace(i, std::move(log));
    } catch (const Error&) {
      continue;  // the run counts as failed where a table needs the file, and says so there
    }
  }
  return logs;
}

bool has_limits(const StageQuantity& quantity, const Report& report) {
  return std::string_view(quantity.probe) == "sharpness" && !report.stage_edges.empty();
}

/// Sharpness has limits where the run's edges are known.
Limits limits_for(const Report& report, const StageQuantity& quantity, std::size_t run) {
  const auto found = report.stage_edges.find(run);
  if (!has_limits(quantity, report) || found == report.stage_edges.end()) return {};
  return {.edges = found->second, .rates = report.runs[run].values_of("lr")};
}

}  // namespace

PageSection strips_section(const Report& report) {
  PageSection section{.id = "strips", .title = "Stage by stage: edges, and what probes measured"};
  for (const Chart& chart : report.edges) section.body += chart_figure(chart);
  for (const std::string& note : report.edges_notes)
    section.body += concat("<p class=\"quiet\">", html_text(note), "</p>\n");
  const std::map<std::size_t, std::vector<ProbeValue>> logs = logs_of(report);
  std::size_t charts = 0;
  for (const StageQuantity& quantity : kStageQuantities) {
    std::string figures;
    for (const auto& [run, log] : logs) {
      const auto stages = values_by_stage(log, quantity);
      if (stages.empty() || ++charts > kMostProbeCharts) continue;
      const RunRecord& record = report.runs[run];
      const std::string name = record.folder.filename().string();
      figures +=
          chart_figure(quantity_chart(record.done() ? name : concat(name, ", ", record.state),
                                      stages, quantity, limits_for(report, quantity, run)));
    }
    if (figures.empty()) continue;
    section.body += concat("<h3>", html_text(quantity.what), "</h3>\n<p class=\"quiet\">One run ",
                           "for each setting.",
                           has_limits(quantity, report)
                               ? " The limit is the stage’s edge of stability over the learning "
                                 "rate with which the epoch began."
                               : "",
                           "</p>\n", figures);
  }
  if (charts > kMostProbeCharts)
    section.body += concat("<p>", charts - kMostProbeCharts,
                           " more are not drawn; <code>pipewright plot</code> draws any.</p>\n");
  return section;
}

}  // namespace pipewright
