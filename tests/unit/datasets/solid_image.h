// SPDX-License-Identifier: Apache-2.0
/// PNG images of one colour, for tests.
#pragma once

#include <zlib.h>

#include <string>

namespace pipewright::fixtures {

/// A PNG image whose pixels are all (grey, grey, grey).
inline std::string solid_png(std::uint32_t height, std::uint32_t width, int grey) {
  const auto number = [](std::uint64_t value) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255);
    return bytes;
  };
  const auto chunk = [&](const std::string& kind, const std::string& data) {
    const std::string body = kind + data;
    const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
    return number(data.size()) + body + number(crc32(0, bytes, static_cast<uInt>(body.size())));
  };
  std::string rows;
  for (std::uint32_t y = 0; y < height; ++y)
    rows += '\0' + std::string(std::size_t{3} * width, static_cast<char>(grey));
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", number(width) + number(height) + std::string("\x08\x02\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace pipewright::fixtures
