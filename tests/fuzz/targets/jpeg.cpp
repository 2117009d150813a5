// SPDX-License-Identifier: Apache-2.0
// JPEG images: as many pixels as the image says, and no more than its bytes can hold.
#include "datasets/images/jpeg.h"

#include <algorithm>

#include "core/base/random.h"
#include "datasets/images/image.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

/// An image of this many pixels at most is asked for: arithmetic coding sets no limit but the
/// reader's own, whose images take a second each.
constexpr std::size_t kMostPixels = 1 << 20;

/// Whether a marker of this second byte begins a frame: C4, C8 and CC begin something else.
bool begins_frame(std::uint8_t code) {
  return code == 0xc0 || (code > 0xc0 && code <= 0xcf && code % 4 != 0);
}

/// The largest size that a frame header among the bytes states.
std::size_t largest_stated(std::string_view bytes) {
  std::size_t most = 0;
  const auto number = [&](std::size_t at) {
    return std::size_t{static_cast<std::uint8_t>(bytes[at])} << 8 |
           static_cast<std::uint8_t>(bytes[at + 1]);
  };
  for (std::size_t at = 0; at + 9 <= bytes.size(); ++at)
    if (bytes[at] == '\xff' && begins_frame(static_cast<std::uint8_t>(bytes[at + 1])))
      most = std::max(most, number(at + 5) * number(at + 7));
  return most;
}

bool is_arithmetic(std::string_view bytes) {
  return bytes.find("\xff\xc9") != std::string_view::npos ||
         bytes.find("\xff\xca") != std::string_view::npos;
}

std::string read(std::string_view bytes) {
  const bool arithmetic = is_arithmetic(bytes);
  if (arithmetic && largest_stated(bytes) > kMostPixels)
    throw Error(ErrorKind::Data, "is not asked for so many pixels");
  const Image image = decode_image(bytes, "fuzz.jpg");
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  require(image.height > 0 && image.width > 0 && image.pixels.size() == 3 * pixels,
          "the image has other pixels than it says");
  require(arithmetic || pixels <= bytes.size() * 8 * 64, "the image is larger than its bytes");
  return concat(
      image.width, " x ", image.height, ' ',
      stable_hash({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()}));
}

/// A block of 64 pixels can be a bit, and takes 3 bytes a pixel, in a CMYK image 7 and while a
/// progressive one is read 8 more.
std::size_t most_memory(std::string_view bytes) {
  const std::size_t pixels = is_arithmetic(bytes) ? kMostPixels : 8 * 64 * bytes.size();
  return (std::size_t{4} << 20) + 15 * pixels;
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .most_bytes = 1024, .rounds = 8000};

}  // namespace pipewright::fuzz
