/// PNG images.
#pragma once

#include <string>
#include <string_view>

#include "datasets/images/image.h"

namespace pipewright {

/// Grey becomes three equal channels, of 1, 2 and 4 bits scaled to 0 … 255; of 16 bits the upper 8
/// are taken (of grey ones too, which Pillow clips at 255 instead); palettes are looked up; alpha
/// and gamma are ignored. Throws Error{Data} at `where` for damaged and truncated files.
Image decode_png(std::string_view bytes, const std::string& where);

}  // namespace pipewright
