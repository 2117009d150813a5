// SPDX-License-Identifier: Apache-2.0
/// Heat maps: cells over the values of two keys, in the colour of a metric's mean over the runs of
/// a cell. Runs that diverged are part of the picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tables/curves.h"
#include "core/tables/gnuplot_text.h"

namespace pipewright {

struct MapCell {
  double x = 0, y = 0;  ///< places on the axes
  double mean = 0;      ///< of the runs that are done; NaN if none is
  int runs = 0;         ///< done, with the metric
  int diverged = 0;     ///< ended in numbers that are not finite
};

struct HeatMap {
  std::string title;  ///< what its runs have in common; "" if there is only one map
  std::string metric;
  bool percent = false;  ///< means are in percent
  Axis x, y;
  bool log_color = false;
  std::vector<MapCell> cells;  ///< of runs that are done or diverged; others leave a hole
  std::optional<OverCurve> over;
};

/// Makes the maps of a spec of PlotKind::Map, in order of first appearance in the runs. Throws
/// Error{Experiment} with all problems, as make_pictures() does; also for a curve over a map with
/// an axis of names.
std::vector<HeatMap> make_maps(const PlotSpec& spec, const std::vector<RunRecord>& runs);

/// The complete gnuplot script that draws the map into `file`. Cells meet halfway between their
/// values (on a logarithmic axis at the geometric mean), so that a curve over them is where its
/// numbers are.
std::string gnuplot_script(const HeatMap& map, PictureFormat format,
                           const std::filesystem::path& file);

/// Draws the map into a temporary file and renames it to `file`. Throws as run_gnuplot() does.
void draw(const HeatMap& map, PictureFormat format, const std::filesystem::path& file);

}  // namespace pipewright
