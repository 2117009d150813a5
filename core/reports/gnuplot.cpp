// SPDX-License-Identifier: Apache-2.0
#include "core/reports/gnuplot.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <vector>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/system/child_process.h"
#include "core/system/temporary_file.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

/// Colour of curve i and of its published points; after twelve colours they repeat.
std::string color_of(std::size_t i) {
  static constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#7f3c8d",
                                      "#8c564b", "#80ba5a", "#a5aa99", "#e73f74"};
  return concat(" lc rgb '", kColors[i % kColors.size()], "'");
}

/// A string literal of gnuplot with these bytes. Characters that gnuplot could interpret, such as
/// quotes or backquotes, are written as octal escapes; letters beyond ASCII stay. A digit after an
/// escape is escaped, too, because gnuplot 5.4 reads "\0771" as one escape.
std::string gnuplot_string(std::string_view bytes) {
  std::string out = "\"";
  bool plain = true;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool digit_behind_number = !plain && std::isdigit(byte) != 0;
    plain = !digit_behind_number &&
            (byte >= 0x80 || std::isalnum(byte) != 0 ||
             std::string_view(" .,:;()/%+-_=#").find(c) != std::string_view::npos);
    if (plain) {
      out += c;
    } else {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", byte);
      out += octal.data();
    }
  }
  return out + "\"";
}

/// A text for the picture, shortened so that curves have room. It never contains "]]>", which XML
/// text may not have and which gnuplot does not escape.
std::string drawn_text(std::string_view text) {
  constexpr std::size_t kMost = 80;  // characters
  std::string drawn = printable(text, kMost);
  for (std::size_t at; (at = drawn.find("]]>")) != std::string::npos;) drawn.insert(at + 2, " ");
  return gnuplot_string(drawn);
}

std::string data_block(const std::string& name, const std::vector<CurvePoint>& points) {
  std::string text = name + " << END\n";
  for (const CurvePoint& p : points)
    text += concat(number_text(p.epoch), " ", number_text(p.mean), " ", number_text(p.mean - p.std),
                   " ", number_text(p.mean + p.std), "\n");
  return text + "END\n";
}

bool has_band(const Curve& curve) {
  for (const CurvePoint& point : curve.points)
    if (point.runs > 1) return true;
  return false;
}

/// Plot style of a curve: a line through a single point would be invisible.
const char* style(const std::vector<CurvePoint>& points) {
  return points.size() == 1 ? "points pt 7" : "lines lw 2";
}

std::string title_of(const Curve& curve) {
  int runs = 0;
  for (const CurvePoint& point : curve.points) runs = std::max(runs, point.runs);
  return runs > 1 ? concat(curve.name, " (", runs, " runs)") : curve.name;
}

}  // namespace

std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file) {
  std::string text =
      format == PictureFormat::Svg
          ? "set terminal svg size 900,560 noenhanced font 'sans,14' background 'white'\n"
          : "set terminal pngcairo size 1350,840 noenhanced font 'sans,16'\n";
  text +=
      concat("set encoding utf8\nset output ", gnuplot_string(file.string()), "\nset title ",
             drawn_text(picture.title), "\nset xlabel ",
             drawn_text(picture.hours_on.empty() ? "epoch"
                                                 : concat("modelled hours on ", picture.hours_on)),
             "\nset ylabel ", drawn_text(picture.metric + (picture.percent ? " (%)" : "")),
             "\nset grid\nset key outside right top\nset style fill transparent solid 0.15 "
             "noborder\n");
  std::vector<std::string> drawn;
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const Curve& curve = picture.curves[i];
    const std::string ours = concat("$ours", i), theirs = concat("$theirs", i), color = color_of(i);
    text += data_block(ours, curve.points);
    if (!curve.published.empty()) text += data_block(theirs, curve.published);
    if (has_band(curve))
      drawn.push_back(concat(ours, " using 1:3:4 with filledcurves", color, " notitle"));
    drawn.push_back(concat(ours, " using 1:2 with ", style(curve.points), color, " title ",
                           drawn_text(title_of(curve))));
    if (!curve.published.empty())
      drawn.push_back(concat(theirs, " using 1:2 with lines lw 1 dt 2", color, " title ",
                             drawn_text(curve.name + ", published")));
  }
  return text + "plot " + join(drawn, ", \\\n     ") + "\n";
}

void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file) {
  if (program_on_path("gnuplot").empty())
    throw Error(
        ErrorKind::Experiment,
        "`pipewright plot` needs gnuplot, which is not installed; on Debian, install gnuplot-nox");
  TemporaryFile part(file);
  const std::string script = gnuplot_script(picture, format, part.name());
  constexpr std::size_t kMostSaid = 4000;  // bytes of output
  const auto [end, said] = output_of({"gnuplot", "-"}, kMostSaid, script);
  print_error("%s", said.c_str());  // escapes control bytes
  if (end.code != 0)
    throw Error(ErrorKind::Data,
                end.signal != 0 ? concat("signal ", end.signal, " ended gnuplot")
                                : concat("gnuplot failed (exit code ", end.code, ")"),
                file.string());
  part.rename(file);
}

}  // namespace pipewright
