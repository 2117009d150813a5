// SPDX-License-Identifier: Apache-2.0
#include "core/tables/gnuplot_text.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/system/child_process.h"
#include "core/system/temporary_file.h"
#include "core/system/terminal.h"

namespace pipewright {

// A digit after an escape is escaped, too, because gnuplot 5.4 reads "\0771" as one escape.
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
      out += printed("\\%03o", byte);
    }
  }
  return out + "\"";
}

std::string drawn_text(std::string_view text) {
  constexpr std::size_t kMost = 80;  // characters
  std::string drawn = printable(text, kMost);
  for (std::size_t at; (at = drawn.find("]]>")) != std::string::npos;) drawn.insert(at + 2, " ");
  return gnuplot_string(drawn);
}

std::string gnuplot_head(PictureFormat format, const std::filesystem::path& file,
                         const std::string& title) {
  const char* terminal =
      format == PictureFormat::Svg
          ? "set terminal svg size 900,560 noenhanced font 'sans,14' background 'white'\n"
          : "set terminal pngcairo size 1350,840 noenhanced font 'sans,16'\n";
  return concat(std::string_view(terminal), "set encoding utf8\nset output ",
                gnuplot_string(file.string()), "\nset title ", drawn_text(title), "\n");
}

std::string gnuplot_axis(const char* letter, const Axis& axis, const std::vector<double>& places) {
  constexpr std::size_t kMostTicks = 16;
  const std::string_view name = letter;
  std::string text = concat("set ", name, "label ", drawn_text(axis.label), "\n");
  if (axis.log) text += concat("set logscale ", name, "\n");
  if (!axis.keyed || (axis.names.empty() && places.size() > kMostTicks)) return text;
  std::vector<std::string> ticks;
  for (const double place : places)
    ticks.push_back(concat(axis.names.empty()
                               ? drawn_text(number_text(place))
                               : drawn_text(axis.names[static_cast<std::size_t>(place)]),
                           " ", number_text(place)));
  return text + concat("set ", name, "tics (", join(ticks, ", "), ")\n");
}

double finite(double number) {
  constexpr double kMost = 1e300;
  return std::clamp(number, -kMost, kMost);
}

std::string gnuplot_points(const char* name, const std::vector<std::pair<double, double>>& points) {
  std::string text = concat(std::string_view(name), " << END\n");
  for (const auto& [x, y] : points) text += concat(x, " ", y, "\n");
  return text + "END\n";
}

void run_gnuplot(const std::filesystem::path& file,
                 const std::function<std::string(const std::filesystem::path&)>& script_for) {
  if (program_on_path("gnuplot").empty())
    throw Error(
        ErrorKind::Experiment,
        "`pipewright plot` needs gnuplot, which is not installed; on Debian, install gnuplot-nox");
  TemporaryFile part(file);
  constexpr std::size_t kMostSaid = 4000;  // bytes of output
  const auto [end, said] = output_of({"gnuplot", "-"}, kMostSaid, script_for(part.name()));
  print_error("%s", said.c_str());  // escapes control bytes
  if (end.code != 0)
    throw Error(ErrorKind::Data,
                end.signal != 0 ? concat("signal ", end.signal, " ended gnuplot")
                                : concat("gnuplot failed (exit code ", end.code, ")"),
                file.string());
  part.rename(file);
}

}  // namespace pipewright
