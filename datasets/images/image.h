/// Photographs: JPEG and PNG files decoded to 8-bit RGB, as Pillow's Image.open(…).convert("RGB")
/// gives them. Colour profiles and Exif orientation are ignored, as torchvision ignores them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/images/pixels.h"

namespace pipewright {

/// Rows one after another, red, green and blue of each pixel side by side.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< 3 · height · width

  std::vector<Channel> channels() const;  ///< red, green, blue; of pixels that stay ours
};

/// Images of more pixels are refused before memory is taken for them: 3 bytes a pixel, and while a
/// progressive JPEG is decoded up to 8 more for its coefficients.
inline constexpr std::int64_t kMostPixels = 64'000'000;

/// Decodes a file's bytes, JPEG or PNG as its first bytes say, whatever its name. `where` names the
/// file in errors: Error{Data} for what is neither, damaged, truncated, or too large.
Image decode_image(std::string_view bytes, const std::string& where);

/// Throws Error{Data} at `where` if the image has no pixels, more than kMostPixels, or more than
/// `most_pixels`, which is what the file's bytes can hold at best: it is truncated.
void check_holds(std::int64_t height, std::int64_t width, std::uint64_t most_pixels,
                 const std::string& where);

/// An image of that size, black. Throws Error{Data} at `where` if it has no or too many pixels.
Image black_image(std::int64_t height, std::int64_t width, const std::string& where);

}  // namespace pipewright
