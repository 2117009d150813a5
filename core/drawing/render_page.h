/// A page of SVG: what drawings need of it, written as text. No scripts, no external fonts, a light
/// ground of its own, so that it looks the same in every viewer and on paper.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace pipewright {

namespace palette {
inline constexpr const char* kInk = "#1e2733";    ///< text that is read
inline constexpr const char* kQuiet = "#69758a";  ///< text and lines that explain
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
  bool arrow = false;  ///< a head at the end
};

class SvgPage {
 public:
  /// `title` is what screen readers say; any text.
  SvgPage(double width, double height, std::string_view title);

  void text(double x, double y, std::string_view text, const TextStyle& style = {});
  /// A rounded box; `tooltip` may be empty; `outline` nullptr: none.
  void box(double x, double y, double width, double height, const char* fill, double radius = 3,
           std::string_view tooltip = {}, const char* outline = nullptr);
  void line(double x1, double y1, double x2, double y2, const LineStyle& style = {});
  /// An arc from one point to another at the same height that rises by `rise` (negative: sinks).
  void arc(double x1, double x2, double y, double rise, const LineStyle& style);
  void circle(double x, double y, double radius, const char* fill, const LineStyle& outline);

  std::string svg() &&;

 private:
  std::string stroke(const LineStyle& style);
  void arrow_head(double x, double y, double dx, double dy, const char* color, double size);

  std::string out_;
};

/// With a true minus sign.
std::string signed_text(int number);

/// About how wide the text comes out, in pixels.
double text_width(std::string_view text, double size);

}  // namespace pipewright
