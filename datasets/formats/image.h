/// Photographs: JPEG and PNG files decoded to 8-bit RGB, as Pillow's Image.open(…).convert("RGB")
/// gives them. Colour profiles and Exif orientation are ignored, as torchvision ignores them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/formats/pixels.h"

namespace pipewright {

/// Rows one after another, red, green and blue of each pixel side by side.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< 3 · height · width

  std::vector<Channel> channels() const;  ///< red, green, blue; of pixels that stay ours
};

/// Images of more pixels are refused before memory is taken for them.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

/// Decodes a file's bytes, JPEG or PNG as its first bytes say, whatever its name. `where` names the
/// file in errors: Error{Data} for what is neither, damaged, truncated, or too large.
Image decode_image(std::string_view bytes, const std::string& where);

/// An image of that size, black. Throws Error{Data} at `where` if it has no or too many pixels.
Image black_image(std::int64_t height, std::int64_t width, const std::string& where);

}  // namespace pipewright
