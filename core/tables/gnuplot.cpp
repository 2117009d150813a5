// SPDX-License-Identifier: Apache-2.0
#include "core/tables/gnuplot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "core/base/text.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
                             "#000000", "#7f3c8d", "#8c564b", "#80ba5a", "#a5aa99", "#e73f74"};

/// Colour of curve i and of its published points; after twelve they repeat, with other dashes.
std::string color_of(std::size_t i) {
  return concat("rgb '", kColors[i % kColors.size()], "'");
}

/// Where a band ends that reaches below a logarithmic axis: the least that is drawn above 0.
double least_above_zero(const Picture& picture) {
  double least = std::numeric_limits<double>::infinity();
  for (const Curve& curve : picture.curves)
    for (const LinePoint& point : curve.points)
      for (const double y : {point.mean - point.reach, point.mean, point.mean + point.reach})
        if (y > 0) least = std::min(least, y);
  return least;
}

/// The points of a curve, or its published ones, as a data block. Where is_hole() holds between two
/// points, an empty line separates them, at which gnuplot interrupts the curve. `aside` maps the x
/// of a point to the x at which it is drawn; no band goes below `least`.
std::string data_block(const std::string& name, const Curve& curve, bool published,
                       const std::function<double(double)>& aside, double least) {
  const std::vector<LinePoint>& points = published ? curve.published : curve.points;
  std::string text = name + " << END\n";
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LinePoint& p = points[i];
    if (i > 0 && !published && curve.is_hole(points[i - 1].x, p.x)) text += "\n";
    text += concat(number_text(aside(p.x)), " ", number_text(p.mean), " ",
                   number_text(std::max(p.mean - p.reach, least)), " ",
                   number_text(p.mean + p.reach), "\n");
  }
  return text + "END\n";
}

bool has_interval(const Curve& curve) {
  return std::ranges::any_of(curve.points, [](const LinePoint& p) { return p.runs > 1; });
}

/// Plot style of a curve: a line through a single point would be invisible, and a key has few
/// values, which a line alone would hide.
std::string style(const Picture& picture, const Curve& curve) {
  constexpr std::array kMarkers{7, 5, 9, 13};
  const std::size_t round = curve.color / kColors.size();
  const int marker = kMarkers[round % kMarkers.size()];
  if (curve.points.size() == 1) return concat("points pt ", marker);
  const std::string dashes = round == 0 ? "" : concat(" dt ", 3 + round % kMarkers.size());
  return picture.x.keyed ? concat("linespoints lw 2 pt ", marker, " ps 0.7", dashes)
                         : "lines lw 2" + dashes;
}

/// The title of a curve in lines of the legend, which must not be wide: the names of equal curves
/// continue on further lines, and so do the numbers of runs.
std::vector<std::string> title_of(const Curve& curve) {
  constexpr std::size_t kWidest = 36;  // characters
  std::vector<std::string> lines{""};
  std::string rest = curve.name;
  for (std::size_t at; (at = rest.find(" = ")) != std::string::npos; rest = rest.substr(at + 3)) {
    if (lines.back().size() + at > kWidest && !lines.back().empty()) lines.emplace_back();
    lines.back() += rest.substr(0, at) + " = ";
  }
  if (lines.back().size() + rest.size() > kWidest && !lines.back().empty()) lines.emplace_back();
  lines.back() += rest;
  const std::string runs = curve.runs_text();
  if (lines.back().size() + runs.size() + 2 >= kWidest && !runs.empty())
    lines.push_back(concat("(", runs, ")"));
  else if (!runs.empty())
    lines.back() += concat(" (", runs, ")");
  return lines;
}

/// What bands and error bars are, as the legend says it; "" if there are none.
std::string interval_words(const Picture& picture) {
  if (std::ranges::none_of(picture.curves, has_interval)) return {};
  return picture.interval == PlotInterval::Deviation ? "mean ± sample standard deviation"
                                                     : "mean and its 95 % interval";
}

/// Every x at which some curve has a point or a run that diverged, ascending.
std::vector<double> places_of(const Picture& picture) {
  std::set<double> places;
  for (const Curve& curve : picture.curves) {
    for (const LinePoint& point : curve.points) places.insert(point.x);
    for (const Diverged& each : curve.diverged) places.insert(each.x);
  }
  return {places.begin(), places.end()};
}

/// How far curves may be drawn beside their x, as a share of the distance between neighbouring x.
constexpr double kAside = 0.3;

/// The smallest distance between places of a keyed axis, or quotient if it is logarithmic.
double nearest_of(const Axis& axis, const std::vector<double>& places) {
  if (places.size() < 2) return axis.log ? 2 : 1;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < places.size(); ++i)
    nearest = std::min(nearest, axis.log ? places[i] / places[i - 1] : places[i] - places[i - 1]);
  return nearest;
}

/// The range of a keyed axis, wide enough for curves that stand aside, and for all crosses, which
/// gnuplot does not count as points; and of any axis with one place, where gnuplot would warn.
std::string range_of(const Axis& axis, const std::vector<double>& places) {
  if (places.empty() || (!axis.keyed && places.size() > 1)) return {};
  const double low = places.front(), high = places.back(), nearest = nearest_of(axis, places);
  constexpr double kMargin = 0.05;  // part of the axis
  if (axis.log) {
    const double by =
        low < high ? std::max(std::pow(high / low, kMargin), std::pow(nearest, kAside)) : 2;
    return concat("set xrange [", low / by, ":", finite(high * by), "]\n");
  }
  const double by = low < high ? std::max(kMargin * (high - low), kAside * nearest) : 0.5;
  return concat("set xrange [", finite(low - by), ":", finite(high + by), "]\n");
}

/// The range of the y axis where all that is drawn is equal, where gnuplot would warn.
std::string flat_range_of(const Picture& picture) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto take = [&](double y) {
    low = std::min(low, y);
    high = std::max(high, y);
  };
  for (const Curve& curve : picture.curves)
    for (const std::vector<LinePoint>* const points : {&curve.points, &curve.published})
      for (const LinePoint& point : *points) {
        take(point.mean - point.reach);
        take(point.mean + point.reach);
      }
  if (picture.over)
    for (const auto& [x, y] : picture.over->points) take(y);
  if (low != high || !std::isfinite(low) || (picture.log_y && low <= 0)) return {};
  if (picture.log_y) return concat("set yrange [", low / 2, ":", finite(high * 2), "]\n");
  const double by = low == 0 ? 1 : 0.05 * std::abs(low);
  return concat("set yrange [", finite(low - by), ":", finite(high + by), "]\n");
}

/// Few epochs have a tick each, and none between them.
std::string ticks_of(const Picture& picture, const std::vector<double>& places) {
  constexpr double kMost = 16;
  const bool epochs = picture.x.label == "epoch" && !picture.x.keyed && !picture.x.log;
  return epochs && !places.empty() && places.back() <= kMost ? "set xtics 1\n" : "";
}

/// The commands that draw a cross at each x where runs diverged. The crosses of a curve form a row
/// above the lower edge, and each curve has its own row.
std::string crosses(const Picture& picture) {
  std::string text;
  double row = 0.02;  // part of the height
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    for (const Diverged& each : picture.curves[i].diverged)
      text += concat("set label '×' at first ", each.x, ", graph ", row, " center textcolor ",
                     color_of(picture.curves[i].color), "\n");
    if (!picture.curves[i].diverged.empty()) row += 0.03;
  }
  return text;
}

/// Maps the x of a point of curve i to the x at which it is drawn. On a keyed axis error bars of
/// several curves at one x would hide one another, so each curve is moved aside by a small part of
/// the distance between neighbouring x.
std::function<double(double)> aside_of(const Picture& picture, const std::vector<double>& places,
                                       std::size_t i) {
  const auto there = [](double x) { return x; };
  const auto bars = std::ranges::count_if(picture.curves, has_interval);
  if (!picture.x.keyed || bars < 2) return there;
  constexpr double kStep = 0.05;  // of the distance, between two curves
  const auto curves = static_cast<double>(picture.curves.size());
  const double part =
      std::min(kStep, kAside / curves) * (static_cast<double>(i) - (curves - 1) / 2);
  const double nearest = nearest_of(picture.x, places);
  if (picture.x.log) return [by = std::pow(nearest, part)](double x) { return x * by; };
  return [by = nearest * part](double x) { return x + by; };
}

/// The arguments of `plot` for a curve, whose data blocks have its number.
void add_plots(const Picture& picture, std::size_t i, std::vector<std::string>& drawn) {
  const Curve& curve = picture.curves[i];
  const std::string ours = concat("$ours", i), color = concat(" lc ", color_of(curve.color));
  const std::vector<std::string> title = title_of(curve);
  if (curve.points.empty())
    drawn.push_back(
        concat("keyentry with points pt 2", color, " title ", drawn_text(title.front())));
  if (has_interval(curve))
    drawn.push_back(
        picture.x.keyed
            ? concat(ours, " using 1:2:3:4 with yerrorbars pt 0 lw 1", color, " notitle")
            : concat(ours, " using 1:3:4 with filledcurves", color, " notitle"));
  if (!curve.points.empty())
    drawn.push_back(concat(ours, " using 1:2 with ", style(picture, curve), color, " title ",
                           drawn_text(title.front())));
  for (std::size_t line = 1; line < title.size(); ++line)
    drawn.push_back(
        concat("keyentry with points pt 0 lc rgb 'white' title ", drawn_text(title[line])));
  if (!curve.published.empty())
    drawn.push_back(concat("$theirs", i, " using 1:2 with lines lw 1 dt 2", color, " title ",
                           drawn_text(curve.name + ", published")));
}

/// "test_accuracy (%)"
std::string label_of_metric(const Picture& picture) {
  const std::string unit = picture.percent ? "%" : unit_of(picture.metric);
  return unit.empty() ? picture.metric : concat(picture.metric, " (", unit, ")");
}

}  // namespace

std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file) {
  const std::vector<double> places = places_of(picture);
  std::string text =
      gnuplot_head(format, file, picture.title) + gnuplot_axis("x", picture.x, places) +
      range_of(picture.x, places) +
      gnuplot_axis("y", {.label = label_of_metric(picture), .log = picture.log_y}, {}) +
      flat_range_of(picture) + ticks_of(picture, places) +
      "set grid\nset key outside right top\nset style fill transparent solid 0.15 "
      "noborder\n";
  if (const std::string words = interval_words(picture); !words.empty())
    text += concat("set key title ", drawn_text(words), "\n");
  text += crosses(picture);
  std::vector<std::string> drawn;
  std::string lost;
  const double least =
      picture.log_y ? least_above_zero(picture) : -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const Curve& curve = picture.curves[i];
    const auto aside = aside_of(picture, places, i);
    if (!curve.points.empty()) text += data_block(concat("$ours", i), curve, false, aside, least);
    if (!curve.published.empty())
      text += data_block(concat("$theirs", i), curve, true, aside, least);
    add_plots(picture, i, drawn);
    if (!curve.diverged.empty()) lost = curve.lost;
  }
  if (picture.over) {
    text += gnuplot_points("$over", picture.over->points);
    drawn.push_back(concat("$over using 1:2 with lines lw 2 dt 3 lc rgb 'black' title ",
                           drawn_text(picture.over->name)));
  }
  if (!lost.empty())
    drawn.push_back(concat("keyentry with points pt 2 lc rgb '#666666' title 'runs ", lost, "'"));
  return text + "plot " + join(drawn, ", \\\n     ") + "\n";
}

void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file) {
  run_gnuplot(file, [&](const std::filesystem::path& part) {
    return gnuplot_script(picture, format, part);
  });
}

}  // namespace pipewright
