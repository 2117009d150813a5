/// CIFAR's binary format: records of one or two label bytes and 3,072 pixel bytes (red, green and
/// blue plane of 32 × 32).
#pragma once

#include <cstdint>

#include "datasets/archives/official_file.h"
#include "datasets/images/byte_images.h"

namespace pipewright {

/// Where the label is in a record.
struct CifarLabel {
  std::size_t labels;    ///< label bytes of each record
  std::size_t position;  ///< of the one to use
  int classes;
};

inline constexpr std::int64_t kCifarSide = 32;
inline constexpr std::size_t kCifarPixels = 3 * kCifarSide * kCifarSide;

/// Adds the records of a file. Throws Error{Data} as OfficialFiles::read(), and for a label that is
/// too large, with its record.
void append_cifar_records(OfficialFiles& files, const OfficialFile& file, const CifarLabel& label,
                          ByteImages& images);

}  // namespace pipewright
