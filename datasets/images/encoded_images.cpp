// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/encoded_images.h"

#include "core/base/error_at.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 28;

void check_size(const Image& image, const ImageLook& look, const EncodedImages& from,
                std::size_t index) {
  const std::int64_t height = look.shape[1], width = look.shape[2];
  if (look.size > 0 || (image.height == height && image.width == width)) return;
  throw data_error(from.root / from.names[index], "image of ", image.width, " × ", image.height,
                   " pixels, must be ", width, " × ", height, "; dataset.size makes all equal");
}

}  // namespace

Image EncodedImages::decoded(std::size_t i) const {
  const std::filesystem::path path = root / names[i];
  if (!contents.empty()) return decode_image(contents[i], path.string());
  return decode_image(read_file(path, kLargestFile), path.string());
}

void EncodedImages::write(std::size_t i, const ImageLook& look, const RandomStream* augmentation,
                          std::size_t place, float* x) const {
  const Image image = decoded(i);
  check_size(image, look, *this, i);
  write_image(image.channels(), look, augmentation, place, x);
}

}  // namespace pipewright
