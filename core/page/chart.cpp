// SPDX-License-Identifier: Apache-2.0
#include "core/page/chart.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/html.h"
#include "core/page/line_looks.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostPoints = 400;    // of a line; more cannot be told apart
constexpr std::size_t kMostNumbers = 1500;  // in the table below a chart
constexpr std::size_t kLongestName = 120;

std::vector<ChartPoint> points_of(const std::vector<LinePoint>& points) {
  std::vector<ChartPoint> all;
  for (const LinePoint& p : points)
    if (std::isfinite(p.x) && std::isfinite(p.mean))
      all.push_back({p.x, p.mean, std::isfinite(p.reach) ? p.reach : 0, p.runs, {}});
  return all;
}

/// The line of a curve, broken where all of its runs diverged.
ChartLine line_of(const Curve& curve, const std::string& metric) {
  ChartLine line{.name = curve.name.empty() ? metric : curve.name, .look = curve.color};
  std::vector<ChartPoint> points = points_of(curve.points);
  for (std::size_t i = 1; i < points.size(); ++i)
    points[i].broken = curve.is_hole(points[i - 1].x, points[i].x);
  line.points = thinned(points);
  for (const Diverged& each : curve.diverged) line.crosses.push_back(each.x);
  line.lost = curve.lost;
  line.runs = curve.runs_text();
  line.series = curve.series.empty() ? line.name : curve.series;
  return line;
}

std::string number_of(const ChartPoint& point) {
  return concat(rounded_text(point.y, 5),
                point.reach > 0 ? concat(" ± ", rounded_text(point.reach, 3)) : "",
                point.runs > 1 ? concat(" (", point.runs, ")") : "");
}

/// All x of the lines, ascending, with what each line has there.
std::map<double, std::vector<std::string>> numbers_of(const Chart& chart) {
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const auto cell = [&](double x) -> std::string& {
      std::vector<std::string>& row = rows[x];
      row.resize(chart.lines.size());
      return row[i];
    };
    for (const ChartPoint& point : chart.lines[i].points) {
      std::string& text = cell(point.x);
      if (!text.empty()) text += ", ";
      text += html_text(
          point.name.empty() ? number_of(point) : concat(point.name, ": ", number_of(point)),
          kLongestName);
    }
    for (const double x : chart.lines[i].crosses) cell(x) += " " + chart.lines[i].lost;
  }
  return rows;
}

std::string numbers_table(const Chart& chart) {
  const std::map<double, std::vector<std::string>> rows = numbers_of(chart);
  if (rows.size() * chart.lines.size() > kMostNumbers) return {};
  std::vector<std::string> heads{html_text(chart.x_label)};
  for (const ChartLine& line : chart.lines) heads.push_back(html_text(line.name, kLongestName));
  HtmlTable table(concat(chart.title.empty() ? "" : chart.title + ": ", chart.y_label), heads);
  for (const auto& [x, texts] : rows) {
    std::vector<std::string> cells{html_text(value_on_axis(chart.x_names, x), kLongestName)};
    for (const std::string& text : texts) cells.push_back(text.empty() ? "–" : text);
    table.row(cells);
  }
  return html_details("Numbers", std::move(table).html());
}

/// The legend, which tells lines apart by dashes and markers as well as by colour.
std::string legend(const Chart& chart) {
  std::string text = "<ul class=\"legend\">";
  for (const ChartLine& line : chart.lines)
    text += concat("<li>", look_sample(line), "<span>", html_text(line.name, kLongestName),
                   line.runs.empty() ? std::string() : concat(" (", html_text(line.runs), ")"),
                   "</span></li>");
  return text + "</ul>\n";
}

}  // namespace

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<ChartPoint> some;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kMostPoints; ++i) {
    const std::size_t at = i * (points.size() - 1) / (kMostPoints - 1);
    bool broken = false;
    for (; next <= at; ++next) broken = broken || points[next].broken;
    some.push_back(points[at]);
    some.back().broken = broken;
  }
  return some;
}

bool Chart::empty() const {
  return std::ranges::all_of(
      lines, [](const ChartLine& line) { return line.points.empty() && line.crosses.empty(); });
}

void add_note(Chart& chart, const std::string& sentence) {
  if (sentence.empty()) return;
  if (!chart.note.empty()) chart.note += ' ';
  chart.note += sentence;
}

Chart chart_of(const Picture& picture) {
  Chart chart{.title = picture.title,
              .x_label = picture.x.label,
              .y_label = concat(picture.metric, picture.percent ? " in percent" : ""),
              .log_x = picture.x.log,
              .log_y = picture.log_y,
              .bars = picture.x.keyed,
              .x_names = picture.x.names};
  bool intervals = false;
  std::string lost;
  std::size_t looks = 0;
  for (const Curve& curve : picture.curves) {
    ChartLine line = line_of(curve, picture.metric);
    looks = std::max(looks, line.look + 1);
    for (const ChartPoint& point : line.points) intervals = intervals || point.reach > 0;
    if (!line.crosses.empty()) lost = line.lost;
    chart.lines.push_back(std::move(line));
    if (curve.published.empty()) continue;
    chart.lines.push_back({.name = chart.lines.back().name + ", published",
                           .kind = ChartLine::Kind::Published,
                           .look = curve.color,
                           .points = thinned(points_of(curve.published)),
                           .series = chart.lines.back().series});
  }
  if (picture.over) {
    ChartLine over{.name = picture.over->name,
                   .kind = ChartLine::Kind::Published,
                   .look = looks,
                   .series = concat("over: ", picture.over->name)};
    for (const auto& [x, y] : picture.over->points)
      if (std::isfinite(x) && std::isfinite(y)) over.points.push_back({x, y, 0, 1, {}});
    over.points = thinned(over.points);
    chart.lines.push_back(std::move(over));
  }
  if (intervals)
    chart.note = concat(chart.bars ? "Bars" : "Bands", ": ",
                        picture.interval == PlotInterval::Deviation
                            ? "sample standard deviation over runs."
                            : "95 % confidence interval of the mean.");
  if (!lost.empty()) add_note(chart, concat("× at the lower edge: runs ", lost, "."));
  return chart;
}

std::string value_on_axis(const std::vector<std::string>& names, double value) {
  const auto index = static_cast<std::size_t>(std::max(0., value));
  return index < names.size() ? names[index] : rounded_text(value, 6);
}

std::string chart_figure(const Chart& chart) {
  return concat(
      "<figure class=\"chart\">\n",
      chart.title.empty() ? std::string()
                          : concat("<figcaption>", html_text(chart.title), "</figcaption>\n"),
      "<div class=\"still\" tabindex=\"0\" role=\"group\" aria-label=\"",
      html_text(concat(chart.y_label, " over ", chart.x_label, "; arrows go from point to point"),
                200),
      "\">", chart_svg(chart), "</div>\n", legend(chart),
      chart.note.empty() ? std::string()
                         : concat("<p class=\"quiet\">", html_text(chart.note), "</p>\n"),
      numbers_table(chart), "</figure>\n");
}

std::string chart_figures(const std::vector<Chart>& charts) {
  std::string text;
  for (const Chart& chart : charts)
    if (!chart.empty()) text += chart_figure(chart);
  return text;
}

}  // namespace pipewright
