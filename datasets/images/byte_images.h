// SPDX-License-Identifier: Apache-2.0
/// Data sets of small 8-bit images of one size. They are kept as bytes in memory and converted to
/// normalised floats batch by batch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datasets/images/image_dataset.h"
#include "datasets/images/image_look.h"

namespace pipewright {

/// The images of one split. Image i begins at pixels[i·C·H·W]; its channels follow one another.
struct ByteImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t label(std::size_t i) const { return labels[i]; }
  void append(std::string_view image_bytes, std::uint8_t label) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(image_bytes.data());
    pixels.insert(pixels.end(), first, first + image_bytes.size());
    labels.push_back(label);
  }
  /// The write() that ImageDataset needs. All images have the look's shape.
  void write(std::size_t i, const ImageLook& look, const RandomStream* augmentation,
             std::size_t place, float* x) const {
    const std::int64_t channels = look.shape[0], height = look.shape[1], width = look.shape[2];
    const std::uint8_t* const image =
        pixels.data() + static_cast<std::int64_t>(i) * channels * height * width;
    write_image(planes(image, channels, height, width), look, augmentation, place, x);
  }
};

using ByteImageDataset = ImageDataset<ByteImages>;

}  // namespace pipewright
