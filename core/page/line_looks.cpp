// SPDX-License-Identifier: Apache-2.0
#include "core/page/line_looks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/page/html.h"

namespace pipewright {
namespace {

constexpr std::array kDashes{"", "7 3", "2 3", "9 3 2 3"};

std::string shape(std::size_t look, double x, double y) {
  const std::string left = pixel_text(x - 3.5), right = pixel_text(x + 3.5),
                    top = pixel_text(y - 3.5), bottom = pixel_text(y + 3.5), at_x = pixel_text(x),
                    at_y = pixel_text(y);
  switch (look % 4) {
    case 0: return concat("<circle cx=\"", at_x, "\" cy=\"", at_y, "\" r=\"3.4\"");
    case 1:
      return concat("<rect x=\"", pixel_text(x - 3), "\" y=\"", pixel_text(y - 3),
                    "\" width=\"6\" height=\"6\"");
    case 2:
      return concat("<path d=\"M", left, " ", bottom, "L", right, " ", bottom, "L", at_x, " ", top,
                    "Z\"");
    default:
      return concat("<path d=\"M", left, " ", at_y, "L", at_x, " ", top, "L", right, " ", at_y, "L",
                    at_x, " ", bottom, "Z\"");
  }
}

}  // namespace

std::string pixel_text(double pixels) {
  return number_text(std::round(pixels * 10) / 10);
}

/// A look for a series that has none yet. `taken`: those of the chart.
std::size_t SeriesLooks::new_look(const std::string& series, const std::set<std::size_t>& taken) {
  const auto parts_of = [](const std::string& text) {
    std::set<std::string> parts;
    for (const std::string& part : split(text, ',')) parts.insert(std::string(trimmed(part)));
    return parts;
  };
  const std::set<std::string> parts = parts_of(series);
  for (const auto& [known, look] : known_)
    if (known.second == 1 && !taken.contains(look) &&
        std::ranges::includes(parts_of(known.first), parts))
      return look;
  return looks_++;
}

void SeriesLooks::give(Chart& chart) {
  std::map<std::string, std::size_t> lines;  // of each series
  std::set<std::size_t> taken;
  for (ChartLine& line : chart.lines) {
    if (line.series.empty()) continue;
    std::size_t& count = lines[line.series];
    if (line.kind != ChartLine::Kind::Published) ++count;
    const std::pair key(line.series, std::max<std::size_t>(count, 1));
    if (!known_.contains(key))
      known_[key] = key.second == 1 ? new_look(line.series, taken) : looks_++;
    line.look = known_[key];
    taken.insert(line.look);
  }
}

std::string line_attributes(const ChartLine& line) {
  const char* const dashes = line.kind == ChartLine::Kind::Published
                                 ? "1 4"
                                 : kDashes[line.look / kLineColors % kDashes.size()];
  return concat(" class=\"line c", line.look % kLineColors, "\"",
                *dashes == 0 ? std::string() : concat(" stroke-dasharray=\"", dashes, "\""));
}

std::string marker(const ChartLine& line, double x, double y, const std::string& tooltip) {
  const std::string begin =
      concat(shape(line.look, x, y), " class=\"mark c", line.look % kLineColors, "\"");
  if (tooltip.empty()) return begin + "/>";
  const std::string element = begin.substr(1, begin.find(' ') - 1);
  return concat(begin, "><title>", html_text(tooltip, 200), "</title></", element, ">");
}

std::string look_sample(const ChartLine& line) {
  std::string text =
      "<svg class=\"sample\" viewBox=\"0 0 34 12\" width=\"34\" height=\"12\" "
      "aria-hidden=\"true\">";
  if (line.kind != ChartLine::Kind::Points)
    text += concat("<path d=\"M1 6H33\"", line_attributes(line), "/>");
  return concat(text, marker(line, 17, 6, ""), "</svg>");
}

}  // namespace pipewright
