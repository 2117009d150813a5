// SPDX-License-Identifier: Apache-2.0
/// Small JPEG and PNG files of every kind, and hashes of the pixels that Pillow decodes from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pipewright::fixtures {

struct ImageSample {
  std::string_view name;
  std::int64_t height, width;
  std::uint64_t hash;  ///< stable_hash() of the pixels, red, green and blue of each
  std::string_view base64;

  std::string file() const {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : base64) {
      constexpr std::string_view kDigits =
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
      if (c == '=') break;
      bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
      count += 6;
      if (count < 8) continue;
      count -= 8;
      bytes += static_cast<char>(bits >> count & 255);
    }
    return bytes;
  }
};

inline constexpr ImageSample kImageSamples[] = {
#include "tests/unit/datasets/image_samples.inc"
};

inline std::string sample_file(std::string_view name) {
  for (const ImageSample& sample : kImageSamples)
    if (sample.name == name) return sample.file();
  throw Error(ErrorKind::Bug, concat("no sample ", name));
}

}  // namespace pipewright::fixtures
