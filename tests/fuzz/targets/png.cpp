// SPDX-License-Identifier: Apache-2.0
// PNG images. The pixels that are read, written by libpng as another image, are read as the same.
#include "datasets/images/png.h"

#include <png.h>

#include "core/base/random.h"
#include "datasets/images/image.h"
#include "tests/fuzz/packing.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string encoded(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  header.flags = PNG_IMAGE_FLAG_FAST;
  std::string png;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  png.resize(size);
  require(png_image_write_to_memory(&header, png.data(), &size, 0, image.pixels.data(), 0,
                                    nullptr) != 0,
          concat("libpng does not write the image: ", header.message));
  png.resize(size);
  return png;
}

constexpr std::size_t kSignature = 8, kAroundChunk = 12;

std::uint32_t length_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (const char c : bytes.substr(at, 4)) number = number << 8 | static_cast<std::uint8_t>(c);
  return number;
}

/// The checksum of each chunk.
void mend(std::string& bytes) {
  for (std::size_t at = kSignature; at + kAroundChunk <= bytes.size();) {
    const std::size_t length = length_at(bytes, at);
    if (length > bytes.size() - at - kAroundChunk) return;
    const std::uint32_t sum = crc32_of(std::string_view(bytes).substr(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      bytes[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += kAroundChunk + length;
  }
}

std::string read(std::string_view bytes) {
  const Image image = decode_image(bytes, "fuzz.png");
  require(image.height > 0 && image.width > 0 &&
              image.pixels.size() == static_cast<std::size_t>(3 * image.height * image.width),
          "the image has other pixels than it says");
  const Image again = reread([&] { return decode_image(encoded(image), "written.png"); });
  require(
      again.height == image.height && again.width == image.width && again.pixels == image.pixels,
      "written again, the image has other pixels");
  return concat(
      image.width, " x ", image.height, ' ',
      stable_hash({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()}));
}

/// Deflate packs at most 1,032 bytes into one, of which each can be eight pixels of three bytes;
/// the image, the one that is read again and what is written between are there at once. Metadata is
/// passed over, whatever length it states.
std::size_t most_memory(std::string_view bytes) {
  return (std::size_t{1} << 20) + 1032 * 8 * 3 * 4 * bytes.size();
}

}  // namespace

const Target kTarget{
    .read = read, .most_memory = most_memory, .mend = mend, .most_bytes = 1024, .rounds = 6000};

}  // namespace pipewright::fuzz
