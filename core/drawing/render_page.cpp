// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_page.h"

#include <cmath>

#include "core/base/markup.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pipewright {
namespace {

/// A length rounded to hundredths of a pixel.
std::string px(double value) {
  return number_text(std::round(value * 100) / 100);
}

}  // namespace

SvgPage::SvgPage(double width, double height, std::string_view title)
    : out_(concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", px(width), " ",
                  px(height), "\" width=\"", px(width), "\" height=\"", px(height),
                  "\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" "
                  "role=\"img\">\n<title>",
                  xml_text(title), "</title>\n")) {
  box(0, 0, width, height, palette::kPaper, 0);
}

void SvgPage::text(double x, double y, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  out_ += concat("<text x=\"", px(x), "\" y=\"", px(y), "\" font-size=\"", px(style.size),
                 "\" fill=\"", style.color, "\" text-anchor=\"", style.anchor, "\"",
                 style.bold ? " font-weight=\"bold\"" : "",
                 style.italic ? " font-style=\"italic\"" : "", ">", xml_text(text), "</text>\n");
}

void SvgPage::box(double x, double y, double width, double height, const char* fill, double radius,
                  std::string_view tooltip, const char* outline) {
  out_ += concat("<rect x=\"", px(x), "\" y=\"", px(y), "\" width=\"", px(width), "\" height=\"",
                 px(height), "\" rx=\"", px(radius), "\" fill=\"", fill, "\"");
  if (outline != nullptr) out_ += concat(" stroke=\"", outline, "\" stroke-width=\"1\"");
  out_ += tooltip.empty() ? "/>\n" : concat("><title>", xml_text(tooltip), "</title></rect>\n");
}

std::string SvgPage::stroke(const LineStyle& style) {
  return concat(" fill=\"none\" stroke=\"", style.color, "\" stroke-width=\"", px(style.width),
                "\" stroke-linecap=\"round\"", style.dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void SvgPage::line(double x1, double y1, double x2, double y2, const LineStyle& style) {
  const double length = std::hypot(x2 - x1, y2 - y1);
  const double size = 5 + style.width;
  if (style.arrow && length > 0) {
    const double dx = (x2 - x1) / length, dy = (y2 - y1) / length;
    arrow_head(x2, y2, dx, dy, style.color, size);
    x2 -= dx * size * 0.8;
    y2 -= dy * size * 0.8;
  }
  out_ += concat("<path d=\"M", px(x1), " ", px(y1), "L", px(x2), " ", px(y2), "\"", stroke(style),
                 "/>\n");
}

void SvgPage::arc(double x1, double x2, double y, double rise, const LineStyle& style) {
  // A cubic Bézier curve with steep ends: its control points are a quarter of the way in.
  const double inset = (x2 - x1) / 4, top = y - rise * 4 / 3;
  const double length = std::hypot(inset, y - top), size = 5 + style.width;
  const double dx = inset / length, dy = (y - top) / length;
  const double x_end = style.arrow ? x2 - dx * size * 0.8 : x2;
  const double y_end = style.arrow ? y - dy * size * 0.8 : y;
  out_ += concat("<path d=\"M", px(x1), " ", px(y), "C", px(x1 + inset), " ", px(top), " ",
                 px(x2 - inset), " ", px(top), " ", px(x_end), " ", px(y_end), "\"", stroke(style),
                 "/>\n");
  if (style.arrow) arrow_head(x2, y, dx, dy, style.color, size);
}

void SvgPage::arrow_head(double x, double y, double dx, double dy, const char* color, double size) {
  const double half = size * 0.48;
  const double x_base = x - dx * size, y_base = y - dy * size;
  out_ += concat("<path d=\"M", px(x), " ", px(y), "L", px(x_base - dy * half), " ",
                 px(y_base + dx * half), "L", px(x_base + dy * half), " ", px(y_base - dx * half),
                 "Z\" fill=\"", color, "\"/>\n");
}

void SvgPage::circle(double x, double y, double radius, const char* fill,
                     const LineStyle& outline) {
  out_ += concat("<circle cx=\"", px(x), "\" cy=\"", px(y), "\" r=\"", px(radius), "\" fill=\"",
                 fill, "\" stroke=\"", outline.color, "\" stroke-width=\"", px(outline.width), "\"",
                 outline.dashed ? " stroke-dasharray=\"3 2.5\"" : "", "/>\n");
}

std::string SvgPage::svg() && {
  return std::move(out_) + "</svg>\n";
}

std::string signed_text(int number) {
  return number < 0 ? concat("−", -number) : std::to_string(number);
}

double text_width(std::string_view text, double size) {
  return static_cast<double>(character_count(text)) * size *
         0.556;  // a digit of Helvetica is 0.556 em wide
}

double round_step(double range, int ticks) {
  const double raw = range / ticks, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 5.0})
    if (raw <= step * power) return step * power;
  return 10 * power;
}

}  // namespace pipewright
