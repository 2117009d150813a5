// SPDX-License-Identifier: Apache-2.0
#include "core/reports/gnuplot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

/// Colour of curve i and of its published points; after twelve colours they repeat.
std::string color_of(std::size_t i) {
  static constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#7f3c8d",
                                      "#8c564b", "#80ba5a", "#a5aa99", "#e73f74"};
  return concat("rgb '", kColors[i % kColors.size()], "'");
}

std::string data_block(const std::string& name, const std::vector<CurvePoint>& points) {
  std::string text = name + " << END\n";
  for (const CurvePoint& p : points)
    text += concat(number_text(p.x), " ", number_text(p.mean), " ", number_text(p.mean - p.reach),
                   " ", number_text(p.mean + p.reach), "\n");
  return text + "END\n";
}

bool has_interval(const Curve& curve) {
  return std::ranges::any_of(curve.points, [](const CurvePoint& p) { return p.runs > 1; });
}

/// Plot style of a curve: a line through a single point would be invisible, and a key has few
/// values, which a line alone would hide.
const char* style(const Picture& picture, const std::vector<CurvePoint>& points) {
  if (points.size() == 1) return "points pt 7";
  return picture.x.keyed ? "linespoints lw 2 pt 7 ps 0.7" : "lines lw 2";
}

std::string title_of(const Curve& curve) {
  int runs = 0;
  for (const CurvePoint& point : curve.points) runs = std::max(runs, point.runs);
  return runs > 1 ? concat(curve.name, " (", runs, " runs)") : curve.name;
}

/// What bands and error bars are, as the legend says it; "" if there are none.
std::string interval_words(const Picture& picture) {
  if (std::ranges::none_of(picture.curves, has_interval)) return {};
  return picture.interval == PlotInterval::Deviation ? "mean ± sample standard deviation"
                                                     : "mean and its 95 % interval";
}

/// The x of all points and diverged runs, each once.
std::vector<double> places_of(const Picture& picture) {
  std::set<double> places;
  for (const Curve& curve : picture.curves) {
    for (const CurvePoint& point : curve.points) places.insert(point.x);
    for (const Diverged& each : curve.diverged) places.insert(each.x);
  }
  return {places.begin(), places.end()};
}

/// The range of a keyed axis, wide enough for all crosses, which gnuplot does not count as points.
std::string range_of(const Axis& axis, const std::vector<double>& places) {
  if (!axis.keyed || places.empty()) return {};
  const double low = places.front(), high = places.back();
  constexpr double kMargin = 0.05;  // part of the axis
  if (axis.log) {
    const double by = low < high ? std::pow(high / low, kMargin) : 2;
    return concat("set xrange [", low / by, ":", finite(high * by), "]\n");
  }
  const double by = low < high ? kMargin * (high - low) : 0.5;
  return concat("set xrange [", finite(low - by), ":", finite(high + by), "]\n");
}

/// Crosses where runs diverged, at the lower edge, a row per curve.
std::string crosses(const Picture& picture) {
  std::string text;
  double row = 0.02;  // part of the height
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    for (const Diverged& each : picture.curves[i].diverged)
      text += concat("set label '×' at first ", each.x, ", graph ", row, " center textcolor ",
                     color_of(i), "\n");
    if (!picture.curves[i].diverged.empty()) row += 0.03;
  }
  return text;
}

/// The arguments of `plot` for a curve, whose data blocks have its number.
void add_plots(const Picture& picture, std::size_t i, std::vector<std::string>& drawn) {
  const Curve& curve = picture.curves[i];
  const std::string ours = concat("$ours", i), color = concat(" lc ", color_of(i));
  if (curve.points.empty())
    drawn.push_back(
        concat("keyentry with points pt 2", color, " title ", drawn_text(title_of(curve))));
  if (has_interval(curve))
    drawn.push_back(
        picture.x.keyed
            ? concat(ours, " using 1:2:3:4 with yerrorbars pt 0 lw 1", color, " notitle")
            : concat(ours, " using 1:3:4 with filledcurves", color, " notitle"));
  if (!curve.points.empty())
    drawn.push_back(concat(ours, " using 1:2 with ", style(picture, curve.points), color, " title ",
                           drawn_text(title_of(curve))));
  if (!curve.published.empty())
    drawn.push_back(concat("$theirs", i, " using 1:2 with lines lw 1 dt 2", color, " title ",
                           drawn_text(curve.name + ", published")));
}

}  // namespace

std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file) {
  const std::vector<double> places = places_of(picture);
  std::string text = gnuplot_head(format, file, picture.title) +
                     gnuplot_axis("x", picture.x, places) + range_of(picture.x, places) +
                     gnuplot_axis("y",
                                  {.label = picture.metric + (picture.percent ? " (%)" : ""),
                                   .log = picture.log_y,
                                   .names = {}},
                                  {}) +
                     "set grid\nset key outside right top\nset style fill transparent solid 0.15 "
                     "noborder\n";
  if (const std::string words = interval_words(picture); !words.empty())
    text += concat("set key title ", drawn_text(words), "\n");
  text += crosses(picture);
  std::vector<std::string> drawn;
  bool diverged = false;
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const Curve& curve = picture.curves[i];
    if (!curve.points.empty()) text += data_block(concat("$ours", i), curve.points);
    if (!curve.published.empty()) text += data_block(concat("$theirs", i), curve.published);
    add_plots(picture, i, drawn);
    diverged = diverged || !curve.diverged.empty();
  }
  if (picture.over) {
    text += gnuplot_points("$over", picture.over->points);
    drawn.push_back(concat("$over using 1:2 with lines lw 2 dt 3 lc rgb 'black' title ",
                           drawn_text(picture.over->name)));
  }
  if (diverged)
    drawn.emplace_back("keyentry with points pt 2 lc rgb '#666666' title 'runs diverged'");
  return text + "plot " + join(drawn, ", \\\n     ") + "\n";
}

void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file) {
  run_gnuplot(file, [&](const std::filesystem::path& part) {
    return gnuplot_script(picture, format, part);
  });
}

}  // namespace pipewright
