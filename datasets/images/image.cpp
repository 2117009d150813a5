// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/image.h"

#include "core/base/error_at.h"
#include "datasets/images/jpeg.h"
#include "datasets/images/png.h"

namespace pipewright {

std::vector<Channel> Image::channels() const {
  std::vector<Channel> all;
  for (std::int64_t c = 0; c < 3; ++c)
    all.push_back({pixels.data() + c, height, width, 3 * width, 3});
  return all;
}

Image decode_image(std::string_view bytes, const std::string& where) {
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, where);
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, where);
  throw data_error(where, bytes.empty() ? std::string("is empty, not an image")
                                        : concat("is neither a JPEG nor a PNG image (",
                                                 bytes.size(), " bytes)"));
}

void check_holds(std::int64_t height, std::int64_t width, std::uint64_t most_pixels,
                 const std::string& where) {
  if (height <= 0 || width <= 0 || height > kMostPixels / width)
    throw data_error(where, "image of ", width, " × ", height, " pixels; at most ", kMostPixels,
                     " pixels are read");
  if (static_cast<std::uint64_t>(height * width) > most_pixels)
    throw data_error(where, "is truncated: so few bytes hold no image of ", width, " × ", height,
                     " pixels");
}

Image black_image(std::int64_t height, std::int64_t width, const std::string& where) {
  check_holds(height, width, kMostPixels, where);
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width))};
}

}  // namespace pipewright
