// SPDX-License-Identifier: Apache-2.0
/// A page of SVG, written as text, with the few shapes that our drawings need. It has no scripts,
/// no external fonts and a light background of its own, so that it looks the same in every viewer
/// and on paper.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace pipewright {

namespace palette {
inline constexpr const char* kInk = "#1e2733";    ///< main text
inline constexpr const char* kQuiet = "#69758a";  ///< explanatory text and lines
inline constexpr const char* kRule = "#d5dbe4";
inline constexpr const char* kLane = "#eff2f6";
inline constexpr const char* kPaper = "#ffffff";
inline constexpr const char* kUpdate = "#ee7b1c";
}  // namespace palette

struct TextStyle {
  double size = 11;
  const char* color = palette::kInk;
  const char* anchor = "start";  ///< start | middle | end
  bool bold = false;
  bool italic = false;
};

struct LineStyle {
  const char* color = palette::kQuiet;
  double width = 1;
  bool dashed = false;
  bool arrow = false;  ///< draws an arrow head at the end
};

class SvgPage {
 public:
  /// `title`, any text, is for screen readers.
  SvgPage(double width, double height, std::string_view title);

  void text(double x, double y, std::string_view text, const TextStyle& style = {});
  /// Draws a rounded box. `tooltip` may be empty; `outline` may be nullptr for none.
  void box(double x, double y, double width, double height, const char* fill, double radius = 3,
           std::string_view tooltip = {}, const char* outline = nullptr);
  void line(double x1, double y1, double x2, double y2, const LineStyle& style = {});
  /// Draws an arc between two points at height `y` that rises by `rise` (negative: sinks).
  void arc(double x1, double x2, double y, double rise, const LineStyle& style);
  void circle(double x, double y, double radius, const char* fill, const LineStyle& outline);

  std::string svg() &&;

 private:
  std::string stroke(const LineStyle& style);
  void arrow_head(double x, double y, double dx, double dy, const char* color, double size);

  std::string out_;
};

/// The number as text, with a true minus sign.
std::string signed_text(int number);

/// The approximate width of the text, in pixels.
double text_width(std::string_view text, double size);

/// The distance between about so many ticks of a range: 1, 2 or 5 times a power of ten.
double round_step(double range, int ticks);

}  // namespace pipewright
