// SPDX-License-Identifier: Apache-2.0
#include "core/tables/heat_map.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
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
                .log_color = spec.log_color,
                .cells = {},
                .over = {}};
    map.cells = cells_of(group, spec, map);
    if (map.cells.empty()) continue;
    check_drawable(map, spec, problems);
    if (spec.over) map.over = over_curve(*spec.over, *group.runs.front(), problems);
    maps.push_back(std::move(map));
  }
  problems.throw_if_any();
  return maps;
}

}  // namespace pipewright
