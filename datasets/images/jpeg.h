/// JPEG images, decoded with libjpeg's defaults (accurate integer DCT, smooth upsampling).
#pragma once

#include <string>
#include <string_view>

#include "datasets/images/image.h"

namespace pipewright {

/// Grey becomes three equal channels; CMYK and YCCK, stored inverted as Adobe's programs do, become
/// (255 − c)(255 − k) / 255 and so on, rounded. Throws Error{Data} at `where` for what libjpeg
/// cannot decode and for a file that ends too early. What it mends itself (stray bytes between
/// segments, a wrong code within a scan) is let pass, as Pillow does.
Image decode_jpeg(std::string_view bytes, const std::string& where);

}  // namespace pipewright
