// SPDX-License-Identifier: Apache-2.0
#include "tools/report/charts.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/tables/curves.h"
#include "core/tables/default_layout.h"
#include "core/tables/heat_map.h"

namespace pipewright {
namespace {

/// The runs of which the pictures consist.
std::vector<RunRecord> drawn_runs(const PlotSpec& spec, const Report& report) {
  std::vector<TableKey> keys{spec.x, spec.y};
  keys.insert(keys.end(), spec.lines.begin(), spec.lines.end());
  keys.insert(keys.end(), spec.pictures.begin(), spec.pictures.end());
  return runs_beside(*report.table, keys, report.runs);
}

/// Gives schedules the series of the lines that their runs are in, where these tell them apart.
void name_schedules(const PlotSpec& given, Report& report) {
  std::vector<TableKey> lines = laid_out(given, report.runs).lines;
  std::erase_if(lines, [](const TableKey& key) { return key.name == "stage"; });
  const auto line_of = [&](const ReportSchedule& schedule) {
    return title_of(report.runs[schedule.runs.front()], lines);
  };
  std::map<std::string, std::string> known;  // schedules by lines
  for (const ReportSchedule& schedule : report.schedules)
    if (known.try_emplace(line_of(schedule), schedule.series).first->second != schedule.series)
      return;
  for (ReportSchedule& schedule : report.schedules) schedule.series = line_of(schedule);
}

bool have_numbers(const std::vector<RunRecord>& runs) {
  return std::ranges::any_of(runs, [](const RunRecord& run) { return !run.columns.empty(); });
}

void add_pictures(const PlotSpec& spec, Report& report) {
  const std::vector<RunRecord> runs = drawn_runs(spec, report);
  if (!have_numbers(runs)) return;
  const std::string mixing = mixing_note(spec, runs);
  for (const Picture& picture : make_pictures(spec, runs)) {
    Chart chart = chart_of(picture);
    chart.title = concat(picture.metric, picture.title.empty() ? "" : ", ", picture.title);
    add_note(chart, mixing);
    report.curves.push_back(std::move(chart));
  }
}

void add_maps(const PlotSpec& spec, Report& report) {
  const std::vector<RunRecord> runs = drawn_runs(spec, report);
  if (!have_numbers(runs)) return;
  report.maps = make_maps(spec, runs);
  if (!report.maps.empty()) report.maps_note = mixing_note(spec, runs);
}

}  // namespace

void add_curves(const Value& document, const TableSpec& table, Report& report) {
  PlotSpec spec = read_plot_spec(document);
  spec.hardware.clear();  // curves are over epochs; the section on time has the modelled hours
  if (spec.kind == PlotKind::Map && !is_modelled(spec.metric.name)) add_maps(spec, report);
  const bool drawable = spec.kind == PlotKind::Lines && !is_modelled(spec.metric.name);
  if (!drawable) spec = read_plot_spec(Value::mapping());
  if (!drawable || document.find("plot") == nullptr) {
    spec.metric = table.metric;
    spec.lines.clear();
    for (const std::string& key : report.table->row_keys) spec.lines.push_back({key, {}});
    spec.pictures = table.columns;
  }
  add_pictures(spec, report);
  name_schedules(spec, report);
  const auto has_loss = [](const RunRecord& run) {
    return std::ranges::count(run.columns, "train_loss") > 0;
  };
  if (spec.x.name != "epoch" || spec.metric.name == "train_loss" ||
      std::ranges::none_of(report.runs, has_loss))
    return;
  spec.metric = {"train_loss", {}};
  spec.published.reset();
  spec.over.reset();
  spec.log_y = false;
  std::erase_if(spec.lines, [](const TableKey& key) { return key.name == "stage"; });
  add_pictures(spec, report);
}

}  // namespace pipewright
