// SPDX-License-Identifier: Apache-2.0
/// Draws pictures of curves with gnuplot.
#pragma once

#include <filesystem>
#include <string>

#include "core/tables/curves.h"
#include "core/tables/gnuplot_text.h"

namespace pipewright {

/// The complete gnuplot script, data included, that draws the picture into `file`.
///
/// A curve is a line through its means. Its interval is a band or, where x is a key, error bars;
/// those of several curves stand side by side. Published points are a dashed line of the same
/// colour. Crosses at the lower edge show where runs diverged, and the line is interrupted where
/// all of them did. The legend says how many runs a curve has, and how many of these diverged. The
/// curve of PlotSpec::over is black.
std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file);

/// Draws the picture into a temporary file and renames it to `file`. Throws as run_gnuplot() does.
void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file);

}  // namespace pipewright
