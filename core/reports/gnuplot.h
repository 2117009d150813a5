// SPDX-License-Identifier: Apache-2.0
/// Draws pictures of curves with gnuplot.
#pragma once

#include <filesystem>
#include <string>

#include "core/reports/curves.h"

namespace pipewright {

enum class PictureFormat : std::uint8_t { Svg, Png };

/// The complete gnuplot script, data included, that draws the picture into `file`: the mean of each
/// curve as a line, mean ± standard deviation as a band, published points dashed in the same
/// colour.
std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file);

/// Draws the picture into a temporary file and renames it to `file`. Throws Error{Experiment} if
/// there is no gnuplot, and Error{Data} if it fails.
void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file);

}  // namespace pipewright
