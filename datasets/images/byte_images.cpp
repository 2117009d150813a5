// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/byte_images.h"

namespace pipewright {

void ByteImages::append(std::string_view image_bytes, std::uint8_t label) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(image_bytes.data());
  pixels.insert(pixels.end(), first, first + image_bytes.size());
  labels.push_back(label);
}

void ByteImages::write(std::size_t i, const ImageLook& look, const RandomStream* augmentation,
                       std::size_t place, float* x) const {
  const std::int64_t channels = look.shape[0], height = look.shape[1], width = look.shape[2];
  const std::uint8_t* const image =
      pixels.data() + static_cast<std::int64_t>(i) * channels * height * width;
  write_image(planes(image, channels, height, width), look, augmentation, place, x);
}

}  // namespace pipewright
