// SPDX-License-Identifier: Apache-2.0
/// CIFAR's binary format: each record has one or two label bytes and 3,072 pixel bytes (red, green
/// and blue plane of 32 × 32).
#pragma once

#include <cstdint>

#include "datasets/archives/official_file.h"
#include "datasets/images/byte_images.h"

namespace pipewright {

/// The place of the label in a record.
struct CifarLabel {
  std::size_t labels;    ///< label bytes of each record
  std::size_t position;  ///< index of the one to use
  int classes;
};

inline constexpr std::int64_t kCifarSide = 32;
inline constexpr std::size_t kCifarPixels = 3 * kCifarSide * kCifarSide;

/// Appends the records of a file to `images`. Throws Error{Data} like OfficialFiles::read(), and
/// for a label that is too large, with the number of its record.
void append_cifar_records(OfficialFiles& files, const OfficialFile& file, const CifarLabel& label,
                          ByteImages& images);

}  // namespace pipewright
