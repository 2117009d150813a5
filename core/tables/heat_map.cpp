// SPDX-License-Identifier: Apache-2.0
#include "core/tables/heat_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

/// The runs of one cell.
struct CellRuns {
  std::vector<double> values;
  int diverged = 0;
};

/// The runs of one map.
struct MapRuns {
  std::string title;
  std::vector<const RunRecord*> runs;
};

std::vector<MapCell> cells_of(const MapRuns& group, const PlotSpec& spec, const HeatMap& map) {
  std::map<std::pair<double, double>, CellRuns> cells;
  for (const RunRecord* run : group.runs) {
    const double y = map.y.position(key_text(*run, spec.y.name));
    for (const Sample& sample : samples_of(*run, spec, map.x))
      cells[{sample.x, y}].values.push_back((map.percent ? 100 : 1) * sample.value);
    if (run->diverged()) ++cells[{map.x.position(key_text(*run, spec.x.name)), y}].diverged;
  }
  std::vector<MapCell> found;
  for (const auto& [place, runs] : cells)
    found.push_back({.x = place.first,
                     .y = place.second,
                     .mean = moments_of(runs.values).mean,
                     .runs = static_cast<int>(runs.values.size()),
                     .diverged = runs.diverged});
  return found;
}

/// Records a problem for what a logarithm of colours, or a curve over names, cannot show.
void check_drawable(const HeatMap& map, const PlotSpec& spec, Problems& problems) {
  const auto not_positive = [](const MapCell& cell) { return cell.runs > 0 && cell.mean <= 0; };
  if (map.log_color && std::ranges::any_of(map.cells, not_positive))
    problems.add(spec.metric.place,
                 concat("plot.color: a cell has ", map.metric,
                        " of 0 or less, which has no place on a logarithmic scale; leave color out "
                        "of plot.log"));
  for (const auto& [axis, option] : {std::pair{&map.x, "plot.x"}, std::pair{&map.y, "plot.y"}})
    if (spec.over && !axis->names.empty())
      problems.add(spec.over->x.place,
                   concat("plot.over: ", std::string_view(option), " is ", axis->label,
                          ", whose values are names; a curve needs axes of numbers"));
}

}  // namespace

std::vector<HeatMap> make_maps(const PlotSpec& spec, const std::vector<RunRecord>& records) {
  const std::vector<RunRecord> derived = derived_added(records, {spec.metric.name}, spec.loss);
  const std::vector<RunRecord>& runs = derived.empty() ? records : derived;
  Problems problems;
  check_plot_keys(spec, runs, problems);
  check_metric(spec.metric, spec.metric_option, runs, problems);
  const Axis x = key_axis(spec.x, "plot.x", spec.log_x, runs, problems);
  const Axis y = key_axis(spec.y, "plot.y", spec.log_y, runs, problems);
  problems.throw_if_any();
  std::vector<MapRuns> groups;
  for (const RunRecord& run : runs) {
    const std::string title = title_of(run, spec.pictures);
    auto group = std::ranges::find(groups, title, &MapRuns::title);
    if (group == groups.end()) group = groups.insert(groups.end(), {title, {}});
    group->runs.push_back(&run);
  }
  std::vector<HeatMap> maps;
  for (const MapRuns& group : groups) {
    HeatMap map{.title = group.title,
                .metric = spec.metric.name,
                .percent = is_share(spec.metric.name),
                .x = x,
                .y = y,
                .log_color = spec.log_color};
    map.cells = cells_of(group, spec, map);
    if (map.cells.empty()) continue;
    check_drawable(map, spec, problems);
    if (spec.over) map.over = over_curve(*spec.over, *group.runs.front(), problems);
    maps.push_back(std::move(map));
  }
  problems.throw_if_any();
  return maps;
}

// The gnuplot script.
namespace {

/// The lower and upper edge of the cells at each value of an axis.
using Edges = std::map<double, std::pair<double, double>>;

double between(double a, double b, bool log) {
  return log ? std::sqrt(a) * std::sqrt(b) : (a + b) / 2;
}

/// Cells end halfway to their neighbours, and the outermost as far to the other side. A lone value
/// has a cell of width 1, on a logarithmic axis of a factor of 4.
Edges edges_of(const std::vector<double>& places, bool log) {
  Edges edges;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double at = places[i];
    double low = log ? at / 2 : at - 0.5, high = log ? at * 2 : at + 0.5;
    const bool first = i == 0, last = i + 1 == places.size();
    if (!first) low = between(places[i - 1], at, log);
    if (!last) high = between(at, places[i + 1], log);
    if (first && !last) low = log ? at * (at / high) : 2 * at - high;
    if (last && !first) high = log ? at * (at / low) : 2 * at - low;
    edges[at] = {finite(low), finite(high)};
  }
  return edges;
}

std::vector<double> places_of(const HeatMap& map, double MapCell::*coordinate) {
  std::set<double> places;
  for (const MapCell& cell : map.cells) places.insert(cell.*coordinate);
  return {places.begin(), places.end()};
}

/// A line of a data block: middle, edges and value of a cell.
std::string cell_line(const MapCell& cell, const Edges& x, const Edges& y) {
  const auto [left, right] = x.at(cell.x);
  const auto [bottom, top] = y.at(cell.y);
  return concat(cell.x, " ", cell.y, " ", left, " ", right, " ", bottom, " ", top, " ", cell.mean,
                "\n");
}

std::string range_of(const char* letter, const Edges& edges) {
  return concat("set ", std::string_view(letter), "range [", edges.begin()->second.first, ":",
                edges.rbegin()->second.second, "]\n");
}

/// The range of colours where all means are equal, which gnuplot would widen with a warning.
std::string color_range_of(const HeatMap& map) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const MapCell& cell : map.cells)
    if (cell.runs > 0) {
      low = std::min(low, cell.mean);
      high = std::max(high, cell.mean);
    }
  if (low != high) return {};
  const double by = low == 0 ? 1 : std::abs(low) / 2;
  return concat("set cbrange [", low - by, ":", low + by, "]\n");
}

/// A data block of the cells that `chosen` takes; "" if it takes none.
template <class Chosen>
std::string block_of(const char* name, const HeatMap& map, const Edges& x, const Edges& y,
                     Chosen chosen) {
  std::string lines;
  for (const MapCell& cell : map.cells)
    if (chosen(cell)) lines += cell_line(cell, x, y);
  return lines.empty() ? lines : concat(std::string_view(name), " << END\n", lines, "END\n");
}

/// Five colours of viridis, which stay apart in grey and for the colour-blind.
constexpr const char* kPalette =
    "set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n";

}  // namespace

std::string gnuplot_script(const HeatMap& map, PictureFormat format,
                           const std::filesystem::path& file) {
  const std::vector<double> columns = places_of(map, &MapCell::x),
                            rows = places_of(map, &MapCell::y);
  const Edges x = edges_of(columns, map.x.log), y = edges_of(rows, map.y.log);
  std::string text =
      gnuplot_head(format, file, map.title) + gnuplot_axis("x", map.x, columns) +
      gnuplot_axis("y", map.y, rows) + range_of("x", x) + range_of("y", y) +
      concat("set cblabel ", drawn_text(map.metric + (map.percent ? " (%)" : "")), "\n",
             std::string_view(kPalette), "set key outside below\nset tics out nomirror\n");
  if (map.log_color) text += "set logscale cb\n";
  text += color_range_of(map);
  const std::string means =
      block_of("$cells", map, x, y, [](const MapCell& cell) { return cell.runs > 0; });
  const std::string all = block_of("$diverged", map, x, y, [](const MapCell& cell) {
    return cell.diverged > 0 && cell.runs == 0;
  });
  const std::string some = block_of(
      "$some", map, x, y, [](const MapCell& cell) { return cell.diverged > 0 && cell.runs > 0; });
  text += means + all + some;
  std::vector<std::string> drawn;
  if (!means.empty())
    drawn.emplace_back(
        "$cells using 1:2:3:4:5:6:7 with boxxyerror fs solid noborder lc palette notitle");
  if (!all.empty()) {
    drawn.emplace_back(
        "$diverged using 1:2:3:4:5:6 with boxxyerror fs solid noborder lc rgb '#d9d9d9' notitle");
    drawn.emplace_back(
        "$diverged using 1:2 with points pt 2 ps 3 lw 2 lc rgb '#c00000' title "
        "'all runs diverged'");
  }
  if (!some.empty()) {  // white below, because the colours of cells are light and dark
    drawn.emplace_back("$some using 1:2 with points pt 2 ps 1.5 lw 6 lc rgb 'white' notitle");
    drawn.emplace_back(
        "$some using 1:2 with points pt 2 ps 1.5 lw 2 lc rgb '#c00000' title 'some runs diverged; "
        "the mean of the others'");
  }
  if (map.over) {
    text += gnuplot_points("$over", map.over->points);
    drawn.push_back("$over using 1:2 with lines lw 6 lc rgb 'white' notitle");
    drawn.push_back(concat("$over using 1:2 with lines lw 2 dt 2 lc rgb 'black' title ",
                           drawn_text(map.over->name)));
  }
  return text + "plot " + join(drawn, ", \\\n     ") + "\n";
}

void draw(const HeatMap& map, PictureFormat format, const std::filesystem::path& file) {
  run_gnuplot(file,
              [&](const std::filesystem::path& part) { return gnuplot_script(map, format, part); });
}

}  // namespace pipewright
