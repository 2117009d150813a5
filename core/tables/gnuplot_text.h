// SPDX-License-Identifier: Apache-2.0
/// Parts of gnuplot scripts that all pictures share: texts that cannot be code, and axes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tables/samples.h"

namespace pipewright {

enum class PictureFormat : std::uint8_t { Svg, Png };

/// A string literal of gnuplot with these bytes. Characters that gnuplot could interpret, such as
/// quotes or backquotes, are written as octal escapes; letters beyond ASCII stay.
std::string gnuplot_string(std::string_view bytes);

/// A text for the picture as a literal, shortened so that curves have room. It never contains
/// "]]>", which XML text may not have and which gnuplot does not escape.
std::string drawn_text(std::string_view text);

/// The first lines of a script: terminal, output file, title.
std::string gnuplot_head(PictureFormat format, const std::filesystem::path& file,
                         const std::string& title);

/// Label, scale and ticks of an axis. `letter`: "x" or "y"; `places`: the values of a keyed axis,
/// which get ticks unless they are numbers and too many.
std::string gnuplot_axis(const char* letter, const Axis& axis, const std::vector<double>& places);

/// The number, or the largest or least one that gnuplot can read in the place of an infinite one.
double finite(double number);

/// A data block of points, one per line.
std::string gnuplot_points(const char* name, const std::vector<std::pair<double, double>>& points);

/// Runs gnuplot on a script that draws into the file it is given, and renames that to `file`.
/// Throws Error{Experiment} if there is no gnuplot, and Error{Data} if it fails.
void run_gnuplot(const std::filesystem::path& file,
                 const std::function<std::string(const std::filesystem::path&)>& script_for);

}  // namespace pipewright
