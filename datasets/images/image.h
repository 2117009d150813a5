// SPDX-License-Identifier: Apache-2.0
/// JPEG and PNG files, decoded to 8-bit RGB like Pillow's Image.open(…).convert("RGB"). Colour
/// profiles and Exif orientation are ignored, as in torchvision.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/images/pixels.h"

namespace pipewright {

/// An 8-bit RGB image: rows from top to bottom, with interleaved red, green and blue.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< 3 · height · width

  std::vector<Channel> channels() const;  ///< red, green, blue; views of `pixels`
};

/// Images of more pixels are refused before memory is allocated. A pixel takes 3 bytes, and up to 8
/// more for the coefficients while a progressive JPEG is decoded.
inline constexpr std::int64_t kMostPixels = 64'000'000;

/// Decodes a file's bytes; the first bytes, not the name, tell JPEG from PNG. Throws Error{Data} at
/// `where` if the file is neither, damaged, truncated or too large.
Image decode_image(std::string_view bytes, const std::string& where);

/// Throws Error{Data} at `where` if the image has no pixels, more than kMostPixels, or more than
/// `most_pixels`, the most that the file's bytes can encode; the file is truncated then.
void check_holds(std::int64_t height, std::int64_t width, std::uint64_t most_pixels,
                 const std::string& where);

/// Makes a black image. Throws Error{Data} at `where` if it would have no pixels or too many.
Image black_image(std::int64_t height, std::int64_t width, const std::string& where);

}  // namespace pipewright
