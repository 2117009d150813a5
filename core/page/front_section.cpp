// SPDX-License-Identifier: Apache-2.0
// The metric against time: which settings no other beats in both.
#include <algorithm>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/sections.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostNames = 12;  // of points; more would cover each other
constexpr double kManyTimes = 10;       // as long: a logarithmic axis shows both ends

bool spans_many_times(const std::vector<TradeoffRow>& rows) {
  const auto [low, high] = std::ranges::minmax(rows, {}, &TradeoffRow::time);
  return low.time > 0 && high.time >= kManyTimes * low.time;
}

}  // namespace

PageSection front_section(const Report& report) {
  PageSection section{.id = "front", .title = concat(report.metric, " against time")};
  if (!report.front || report.front->rows.empty()) return section;
  const ReportFront& front = *report.front;
  const bool percent = is_share(report.metric);
  const double scale = percent ? 100 : 1;
  const std::string metric = concat(report.metric, percent ? " in percent" : "");
  ChartLine best{.name = "not beaten in both", .look = 0}, rest{.name = "others", .look = 1};
  rest.kind = ChartLine::Kind::Points;
  const bool some_failed =
      std::ranges::any_of(front.rows, [](const TradeoffRow& row) { return row.failed > 0; });
  HtmlTable table(concat(metric, " against ", front.time, "; ★: no other is as good in both",
                         some_failed ? ", among those of which no run failed" : ""),
                  {"", html_text(metric), html_text(front.time), "runs", "front"});
  for (const TradeoffRow& row : front.rows) {
    ChartLine& line = row.efficient ? best : rest;
    line.points.push_back(
        {row.time, scale * row.metric, scale * row.std, static_cast<int>(row.runs), row.name});
    table.row({html_text(row.name, 200),
               concat(rounded_text(scale * row.metric),
                      row.runs > 1 ? concat(" ± ", rounded_text(scale * row.std, 3)) : ""),
               concat(rounded_text(row.time), " ", front.unit), runs_text(row),
               row.efficient ? "★" : ""});
  }
  Chart chart{.x_label = concat(front.time, ", ", front.unit), .y_label = metric};
  chart.bars = true;
  chart.named = front.rows.size() <= kMostNames;
  chart.log_x = spans_many_times(front.rows);
  for (ChartLine* const line : {&best, &rest})
    if (!line->points.empty()) chart.lines.push_back(std::move(*line));
  section.body = chart_figure(chart) + std::move(table).html();
  return section;
}

}  // namespace pipewright
