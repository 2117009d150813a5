// SPDX-License-Identifier: Apache-2.0
/// Decodes JPEG images with libjpeg's defaults (accurate integer DCT, smooth upsampling).
#pragma once

#include <string>
#include <string_view>

#include "datasets/images/image.h"

namespace pipewright {

/// Grey becomes three equal channels. CMYK and YCCK, which Adobe's programs store inverted, become
/// (255 − c)(255 − k) / 255 and so on, rounded. Throws Error{Data} at `where` for what libjpeg
/// cannot decode and for truncated files. Faults from which libjpeg recovers (stray bytes between
/// segments, a wrong code within a scan) are accepted, as in Pillow.
Image decode_jpeg(std::string_view bytes, const std::string& where);

}  // namespace pipewright
