// SPDX-License-Identifier: Apache-2.0
/// Draws pictures of curves with gnuplot.
#pragma once

#include <filesystem>
#include <string>

#include "core/reports/curves.h"
#include "core/reports/gnuplot_text.h"

namespace pipewright {

/// The complete gnuplot script, data included, that draws the picture into `file`: the mean of each
/// curve as a line, its interval as a band or, where x is a key, as error bars, published points
/// dashed in the same colour, a cross at the lower edge where runs diverged, whose number the
/// legend says, and the curve of PlotSpec::over in black. Error bars of several curves stand side
/// by side, and a line is interrupted where all its runs diverged.
std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file);

/// Draws the picture into a temporary file and renames it to `file`. Throws as run_gnuplot() does.
void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file);

}  // namespace pipewright
