// SPDX-License-Identifier: Apache-2.0
#include "core/page/comparisons.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/tables/mean_difference.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostAgainst = 3;

/// The different values of a key, if all are numbers and there are at least two; else none.
std::set<double> numbers_of_key(const std::string& key, const std::vector<RunRecord>& runs) {
  std::set<double> numbers;
  for (const RunRecord& run : runs) {
    const std::optional<double> number = parsed<double>(key_text(run, key));
    if (!number || !std::isfinite(*number)) return {};
    numbers.insert(*number);
  }
  return numbers.size() < 2 ? std::set<double>() : numbers;
}

/// Keys with numbers that vary. Where workers vary, their number stands for stages and replicas,
/// with which alone pipelines cannot be compared with data parallelism.
std::vector<std::string> numeric_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  std::set<std::string> seen{"train.seed", "label"};
  if (!numbers_of_key("workers", runs).empty()) {
    keys.emplace_back("workers");
    seen.insert({"pipeline.stages", "pipeline.replicas"});
  }
  for (const RunRecord& run : runs)
    for (const auto& [key, value] : run.varied.fields)
      if (seen.insert(key).second && !numbers_of_key(key, runs).empty()) keys.push_back(key);
  if (keys.size() > kMostAgainst) keys.resize(kMostAgainst);
  return keys;
}

bool wide_range(const std::set<double>& numbers) {
  constexpr double kWide = 8;
  return *numbers.begin() > 0 && *numbers.rbegin() / *numbers.begin() >= kWide;
}

/// Whether a key of rows or columns says what the axis says already.
bool is_same_axis(const std::string& row, const std::string& axis) {
  const bool counts_workers =
      row == "workers" || row == "pipeline.stages" || row == "pipeline.replicas";
  return row == axis || (axis == "workers" && counts_workers);
}

/// Whether a curve has more than one place, so that it says something about the axis alone.
bool varies(const Curve& curve) {
  return curve.points.size() + curve.diverged.size() > 1;
}

double total_seconds(const RunRecord& run) {
  if (!run.column("seconds")) return kNoNumber;
  const std::vector<double> seconds = run.values_of("seconds");
  return std::accumulate(seconds.begin(), seconds.end(), 0.);
}

/// Whether the seconds of a run are those of a pipeline at work. In a serial execution one thread
/// plays all workers, so that its seconds say nothing of a scheme.
bool is_timed(const RunRecord& run) {
  return key_text(run, "pipeline.execution") != "serial" || key_text(run, "workers") == "1";
}

/// Cells with the metric and the seconds that their runs trained.
std::vector<TradeoffRow> measured_rows(const Table& table, const std::vector<RunRecord>& runs) {
  std::vector<TradeoffRow> rows;
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c) {
      const TableCell& cell = table.cells[r][c];
      std::vector<double> seconds;
      for (const std::size_t run : cell.runs)
        if (runs[run].done()) seconds.push_back(total_seconds(runs[run]));
      const double mean = moments_of(seconds).mean;
      if (cell.values.empty() || !std::isfinite(mean) || !std::isfinite(cell.mean())) continue;
      rows.push_back({.name = cell_name(table, r, c),
                      .metric = cell.mean(),
                      .std = cell.values.size() > 1 ? cell.std() : 0,
                      .runs = cell.values.size(),
                      .diverged = diverged_runs(cell, runs),
                      .failed = static_cast<std::size_t>(cell.uncounted),
                      .time = mean});
    }
  return rows;
}

}  // namespace

std::vector<Chart> charts_against(const TableSpec& spec, const Table& table,
                                  const std::vector<RunRecord>& records) {
  std::vector<Chart> charts;
  if (std::ranges::none_of(records, &RunRecord::done)) return charts;
  for (const std::string& key :
       numeric_keys(runs_beside(table, {{table.best_over, {}}}, records))) {
    const std::vector<RunRecord> runs = runs_beside(table, {{key, {}}}, records);
    if (numbers_of_key(key, runs).empty()) continue;  // those with chosen values share one
    PlotSpec plot;
    plot.x = {key, {}};
    plot.metric = spec.metric;
    plot.loss = spec.loss;
    plot.epoch = spec.epoch;
    plot.log_x = wide_range(numbers_of_key(key, runs));
    for (const std::string& row : table.row_keys)
      if (!is_same_axis(row, key)) plot.lines.push_back({row, {}});
    for (const TableKey& column : spec.columns)
      if (!is_same_axis(column.name, key)) plot.lines.push_back(column);
    if (plot.lines.empty()) plot.lines.push_back({concat("=", spec.metric.name), {}});
    for (const Picture& picture : make_pictures(plot, runs)) {
      if (std::ranges::none_of(picture.curves, varies)) continue;
      Chart chart = chart_of(picture);
      chart.title = concat(spec.metric.name, " against ", key);
      add_note(chart, mixing_note(plot, runs));
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

std::optional<ReportFront> front_of(const TableSpec& spec, const Table& table,
                                    const std::vector<RunRecord>& runs) {
  if (is_modelled(spec.metric.name) || better_values(spec.metric.name) == Better::NotJudged ||
      std::ranges::none_of(runs, &RunRecord::done))
    return std::nullopt;
  ReportFront front{.time = "training where it ran", .unit = "s"};
  if (spec.hardware.empty()) {
    if (!std::ranges::all_of(runs, is_timed)) return std::nullopt;
    front.rows = measured_rows(table, runs);
  } else {
    front = {.time = concat("training as modelled on ", spec.hardware.stem().string()),
             .unit = "h"};
    front.rows = make_tradeoff(spec, runs);
    std::erase_if(front.rows, [](const TradeoffRow& row) {
      return !std::isfinite(row.time) || !std::isfinite(row.metric);
    });
  }
  if (front.rows.size() < 2) return std::nullopt;
  mark_efficient(front.rows, better_values(spec.metric.name) == Better::Smaller);
  std::ranges::sort(front.rows, {}, &TradeoffRow::time);
  return front;
}

}  // namespace pipewright
