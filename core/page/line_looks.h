// SPDX-License-Identifier: Apache-2.0
/// How lines of a chart are told apart: by colour, and without it by dashes and markers.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/page/chart.h"

namespace pipewright {

inline constexpr std::size_t kLineColors = 8;  ///< classes c0 … c7 of the page's style

/// Gives each series a look of its own, in the order in which they come, so that a scheme has one
/// colour in all charts of a page. A series that names less than one before it, as "gpipe" does
/// beside "lr 0.1, gpipe", looks like that.
class SeriesLooks {
 public:
  /// Gives the lines of the chart that have a series its look, and a further line of the same
  /// series another one. What was published looks as ours does.
  void give(Chart& chart);

 private:
  std::size_t new_look(const std::string& series, const std::set<std::size_t>& taken);

  std::size_t looks_ = 0;
  std::map<std::pair<std::string, std::size_t>, std::size_t> known_;  ///< series, which of it
};

/// A length in SVG, rounded to tenths of a pixel.
std::string pixel_text(double pixels);

/// SVG's attributes of the line itself.
std::string line_attributes(const ChartLine& line);

/// A marker at a place, of a line's shape. `tooltip` may be "".
std::string marker(const ChartLine& line, double x, double y, const std::string& tooltip);

/// A small picture of the line with its marker, for a legend.
std::string look_sample(const ChartLine& line);

}  // namespace pipewright
