/// Pictures of curves, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>

#include "core/reports/curves.h"

namespace pipewright {

enum class PictureFormat : std::uint8_t { Svg, Png };

/// The whole program, data included, that draws the picture into `file`: the mean of each curve as
/// a line, mean ± standard deviation as a band, what is published dashed in the same colour.
std::string gnuplot_script(const Picture& picture, PictureFormat format,
                           const std::filesystem::path& file);

/// Draws it; the file is whole once it has its name. Throws Error{Experiment} when there is no
/// gnuplot, Error{Data} when it fails.
void draw(const Picture& picture, PictureFormat format, const std::filesystem::path& file);

}  // namespace pipewright
