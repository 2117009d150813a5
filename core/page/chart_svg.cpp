// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/page/chart.h"
#include "core/page/html.h"
#include "core/page/line_looks.h"

namespace pipewright {
namespace {

constexpr double kStillWidth = 760, kStillHeight = 380, kStillLeft = 58, kStillRight = 744,
                 kStillTop = 14, kStillBottom = 326;
constexpr std::size_t kMostMarkers = 60;  // of a line; more would hide it

class ChartSvg {
 public:
  explicit ChartSvg(const Chart& chart) : chart_(chart), x_(x_scale(chart)), y_(y_scale(chart)) {}

  std::string svg() && {
    out_ = concat("<svg viewBox=\"0 0 ", kStillWidth, " ", kStillHeight,
                  "\" role=\"img\" aria-label=\"",
                  html_text(concat(chart_.title.empty() ? "" : chart_.title + ": ", chart_.y_label,
                                   " over ", chart_.x_label),
                            200),
                  "\">\n");
    draw_axes();
    draw_each(&ChartSvg::draw_interval);
    draw_each(&ChartSvg::draw_line);
    draw_each(&ChartSvg::draw_marks);
    return std::move(out_) + "</svg>\n";
  }

 private:
  double left_of(double x) const { return kStillLeft + x_.share(x) * (kStillRight - kStillLeft); }
  double top_of(double y) const { return kStillBottom - y_.share(y) * (kStillBottom - kStillTop); }

  void text(double x, double y, const char* anchor, std::string_view words,
            std::string_view more = {}, std::size_t most = 40) {
    out_ += concat("<text x=\"", pixel_text(x), "\" y=\"", pixel_text(y), "\" text-anchor=\"",
                   anchor, "\"", more, ">", html_text(words, most), "</text>\n");
  }

  /// Draws a part of each line, in a group of its own.
  void draw_each(void (ChartSvg::*draw)(const ChartLine&)) {
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      out_ += concat("<g data-line=\"", i, "\">\n");
      (this->*draw)(chart_.lines[i]);
      out_ += "</g>\n";
    }
  }

  void draw_axes() {
    for (const double tick : y_.ticks) {
      const std::string y = pixel_text(top_of(tick));
      out_ += concat("<path class=\"grid\" d=\"M", kStillLeft, " ", y, "H", kStillRight, "\"/>\n");
      text(kStillLeft - 8, top_of(tick) + 4, "end", rounded_text(tick, 6));
    }
    const std::size_t every = 1 + x_.ticks.size() / 12;
    for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
      const std::string x = pixel_text(left_of(x_.ticks[i]));
      out_ += concat("<path class=\"axis\" d=\"M", x, " ", kStillBottom, "v5\"/>\n");
      if (i % every == 0)
        text(left_of(x_.ticks[i]), kStillBottom + 20, "middle",
             value_on_axis(chart_.x_names, x_.ticks[i]));
    }
    out_ += concat("<path class=\"axis\" d=\"M", kStillLeft, " ", kStillBottom, "H", kStillRight,
                   "\"/>\n");
    text((kStillLeft + kStillRight) / 2, kStillBottom + 44, "middle", chart_.x_label, {}, 100);
    const std::string middle = pixel_text((kStillTop + kStillBottom) / 2);
    text(14, (kStillTop + kStillBottom) / 2, "middle", chart_.y_label,
         concat(" transform=\"rotate(-90 14 ", middle, ")\""));
  }

  void draw_interval(const ChartLine& line) {
    if (std::ranges::none_of(line.points, [](const ChartPoint& p) { return p.reach > 0; })) return;
    const std::string color = concat("c", line.look % kLineColors);
    if (chart_.bars) {
      for (const ChartPoint& p : line.points)
        if (p.reach > 0)
          out_ += concat("<path class=\"line ", color, "\" d=\"M", pixel_text(left_of(p.x)), " ",
                         pixel_text(top_of(p.y - p.reach)), "V", pixel_text(top_of(p.y + p.reach)),
                         "\"/>\n");
      return;
    }
    std::string path;
    for (auto begin = line.points.begin(); begin != line.points.end();) {
      const auto end = std::ranges::find_if(begin + 1, line.points.end(), &ChartPoint::broken);
      path += band(std::span(begin, end));
      begin = end;
    }
    out_ += concat("<path class=\"band ", color, "\" d=\"", path, "\"/>\n");
  }

  /// The outline of the band around points that are joined.
  std::string band(std::span<const ChartPoint> points) const {
    std::string path;
    for (const ChartPoint& p : points)
      path += concat(path.empty() ? "M" : "L", pixel_text(left_of(p.x)), " ",
                     pixel_text(top_of(p.y + p.reach)));
    for (auto p = points.rbegin(); p != points.rend(); ++p)
      path += concat("L", pixel_text(left_of(p->x)), " ", pixel_text(top_of(p->y - p->reach)));
    return path + "Z";
  }

  void draw_line(const ChartLine& line) {
    if (line.points.size() < 2 || line.kind == ChartLine::Kind::Points) return;
    std::string path;
    for (const ChartPoint& p : line.points) {
      if (line.kind == ChartLine::Kind::Steps && !path.empty())
        path += concat("H", pixel_text(left_of(p.x)), "V", pixel_text(top_of(p.y)));
      else
        path += concat(path.empty() || p.broken ? "M" : "L", pixel_text(left_of(p.x)), " ",
                       pixel_text(top_of(p.y)));
    }
    out_ += concat("<path", line_attributes(line), " d=\"", path, "\"/>\n");
  }

  void draw_marks(const ChartLine& line) {
    const std::size_t every = 1 + line.points.size() / kMostMarkers;
    for (std::size_t i = 0; i < line.points.size(); ++i) {
      const ChartPoint& p = line.points[i];
      if (i % every != 0 && i + 1 != line.points.size()) continue;  // the last is the result
      out_ += marker(line, left_of(p.x), top_of(p.y), point_text(line, p)) + "\n";
      if (chart_.named) draw_name(p);
    }
    for (const double x : line.crosses)
      text(left_of(x), kStillBottom - 4, "middle", "×",
           concat(" class=\"cross c", line.look % kLineColors, "\""));
  }

  void draw_name(const ChartPoint& p) {
    const bool right = x_.share(p.x) < 0.7;
    text(left_of(p.x) + (right ? 8 : -8), top_of(p.y) - 6, right ? "start" : "end", p.name);
  }

  /// "gpipe: 93.06 ± 0.4 (3 runs), epoch 2"
  std::string point_text(const ChartLine& line, const ChartPoint& p) const {
    return concat(p.name.empty() ? line.name : p.name, ": ", rounded_text(p.y, 5),
                  p.reach > 0 ? concat(" ± ", rounded_text(p.reach, 3)) : "",
                  p.runs > 1 ? concat(" (", p.runs, " runs)") : "", ", ", chart_.x_label, " ",
                  value_on_axis(chart_.x_names, p.x));
  }

  const Chart& chart_;
  const AxisScale x_, y_;
  std::string out_;
};

}  // namespace

std::string chart_svg(const Chart& chart) {
  return ChartSvg(chart).svg();
}

}  // namespace pipewright
