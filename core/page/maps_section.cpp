// SPDX-License-Identifier: Apache-2.0
// Maps over two settings, as tables whose cells have their number, and a tint besides.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

constexpr std::size_t kTints = 8;            // classes h0 … h7 of the style
constexpr std::size_t kMostMapCells = 2500;  // of one map

/// How large a mean is among those of the map: 0 … kTints − 1.
class Tints {
 public:
  explicit Tints(const HeatMap& map) : scale_(scale_of(means_of(map), map.log_color)) {}

  std::size_t tint(double mean) const {
    return std::min(kTints - 1, static_cast<std::size_t>(scale_.share(mean) * kTints));
  }

 private:
  static std::vector<double> means_of(const HeatMap& map) {
    std::vector<double> means;
    for (const MapCell& cell : map.cells) means.push_back(cell.mean);
    return means;
  }
  AxisScale scale_;
};

std::string map_cell(const MapCell& cell, const Tints& tints) {
  std::string text;
  if (std::isfinite(cell.mean))
    text = concat("<span class=\"heat h", tints.tint(cell.mean), "\">", rounded_text(cell.mean),
                  cell.runs > 1 ? concat(" (", cell.runs, ")") : "", "</span>");
  if (cell.diverged > 0) text += concat(text.empty() ? "" : " ", "× ", cell.diverged, " diverged");
  return text.empty() ? "–" : text;
}

std::string map_table(const HeatMap& map) {
  std::set<double> columns, rows;
  std::map<std::pair<double, double>, const MapCell*> cells;
  for (const MapCell& cell : map.cells) {
    columns.insert(cell.x);
    rows.insert(cell.y);
    cells[{cell.y, cell.x}] = &cell;
  }
  if (columns.size() * rows.size() > kMostMapCells)
    return "<p>A map is too large for this page; <code>pipewright plot</code> draws it.</p>\n";
  std::vector<std::string> heads{html_text(concat(map.y.label, " \\ ", map.x.label))};
  for (const double x : columns) heads.push_back(html_text(value_on_axis(map.x.names, x), 60));
  HtmlTable table(concat(map.title.empty() ? "" : map.title + ": ", map.metric,
                         map.percent ? " in percent" : "", " (number of runs)"),
                  heads);
  const Tints tints(map);
  for (auto y = rows.rbegin(); y != rows.rend(); ++y) {
    std::vector<std::string> line{html_text(value_on_axis(map.y.names, *y), 60)};
    for (const double x : columns) {
      const auto found = cells.find({*y, x});
      line.push_back(found == cells.end() ? "–" : map_cell(*found->second, tints));
    }
    table.row(line);
  }
  return std::move(table).html();
}

}  // namespace

PageSection maps_section(const Report& report) {
  PageSection section{.id = "maps", .title = "Maps"};
  for (const HeatMap& map : report.maps) section.body += map_table(map);
  if (!report.maps_note.empty())
    section.body += concat("<p class=\"quiet\">", html_text(report.maps_note), "</p>\n");
  return section;
}

}  // namespace pipewright
