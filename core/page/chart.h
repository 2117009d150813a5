// SPDX-License-Identifier: Apache-2.0
/// Charts of the page: pictures whose points say their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tables/curves.h"

namespace pipewright {

struct ChartPoint {
  double x = 0, y = 0;
  double reach = 0;  ///< half the interval around y; 0: none is known
  int runs = 1;
  std::string name;     ///< of a point that has one of its own
  bool broken = false;  ///< no line leads to it from the point before: all runs between diverged
};

struct ChartLine {
  enum class Kind : std::uint8_t { Measured, Published, Points, Steps };
  std::string name;
  Kind kind = Kind::Measured;
  std::size_t look = 0;  ///< which colour, dashes and marker
  std::vector<ChartPoint> points;
  std::vector<double> crosses;    ///< x of runs that diverged
  std::string lost = "diverged";  ///< what these did
  std::string runs;               ///< how many it has: "3 runs, 1 diverged"; "" of one
  std::string series;             ///< what is drawn, by which SeriesLooks knows it; "": no series
};

struct Chart {
  std::string title;
  std::string x_label, y_label;
  bool log_x = false, log_y = false;
  bool from_zero = false;            ///< the y-axis begins at 0, as for counts
  bool bars = false;                 ///< intervals are bars, not bands
  bool named = false;                ///< each point's name stands beside it
  std::vector<std::string> x_names;  ///< names of the values 0, 1, … on the x-axis; none: numbers
  std::string note;                  ///< what bands or bars are, and what else must be said
  std::vector<ChartLine> lines;

  bool empty() const;
};

/// At most 400 of a line's points, with the first and the last. The line is broken between two of
/// them if it was broken anywhere between them.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points);

/// Puts a sentence behind those of the chart's note. "" adds nothing.
void add_note(Chart& chart, const std::string& sentence);

/// The picture as `pipewright plot` would draw it.
Chart chart_of(const Picture& picture);

/// The range of an axis and where it has ticks, in the axis' own numbers.
struct AxisScale {
  double low = 0, high = 1;
  bool log = false;
  std::vector<double> ticks;

  /// The place of a value between 0 (low) and 1 (high).
  double share(double value) const;
};

/// A scale with ticks at round numbers that holds all values; those of a logarithmic axis must be
/// above 0. Values that are not finite are passed over.
AxisScale scale_of(const std::vector<double>& values, bool log);
AxisScale x_scale(const Chart& chart);
AxisScale y_scale(const Chart& chart);

/// The name of a value on an axis whose values 0, 1, … have these names, or the number.
std::string value_on_axis(const std::vector<std::string>& names, double value);

/// The chart as SVG that uses the page's classes for colours, so that it is dark where the page is.
/// Groups with a line's number in `data-line` hold all that is drawn of it, so that the page's
/// script can hide it.
std::string chart_svg(const Chart& chart);

/// A figure: picture, legend and numbers.
std::string chart_figure(const Chart& chart);

/// The figures of all charts that are not empty.
std::string chart_figures(const std::vector<Chart>& charts);

}  // namespace pipewright
