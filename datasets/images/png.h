// SPDX-License-Identifier: Apache-2.0
/// Decodes PNG images with libpng.
#pragma once

#include <string>
#include <string_view>

#include "datasets/images/image.h"

namespace pipewright {

/// Grey becomes three equal channels. Values of 1, 2 and 4 bits are scaled to 0 … 255; of 16-bit
/// values the upper 8 bits are taken (for grey images Pillow clips at 255 instead). Palettes are
/// looked up; alpha and gamma are ignored. Throws Error{Data} at `where` for damaged and truncated
/// files.
Image decode_png(std::string_view bytes, const std::string& where);

}  // namespace pipewright
