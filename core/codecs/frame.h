// SPDX-License-Identifier: Apache-2.0
/// Frames: the bytes that cross an edge in place of a tensor, a header and the codec's payload.
/// They are little-endian. This code does not use LibTorch, so received bytes are checked before
/// any tensor is made.
///
///   0  magic 'P' 'w'   2  version 1   3  dtype   4  flags   5  rank   6  codec (2 bytes)
///   8  payload bytes (8)   16  dimensions (8 each)   16 + 8·rank  payload
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

enum class FrameType : std::uint8_t { Float32, Float64, Float16, BFloat16 };

struct FrameHeader {
  /// Hash of the codec's registered name, so that ends with different codecs reject each other.
  std::uint16_t codec = 0;
  FrameType type = FrameType::Float32;  ///< of the encoded tensor
  bool raw = false;                     ///< the payload holds the uncompressed values
  std::vector<std::int64_t> sizes;      ///< of the encoded tensor
  std::int64_t payload = 0;             ///< bytes behind the header

  std::int64_t values() const;
  std::int64_t bytes() const { return 16 + 8 * static_cast<std::int64_t>(sizes.size()); }
  bool operator==(const FrameHeader&) const = default;
};

inline constexpr std::size_t kMostDimensions = 16;
inline constexpr std::int64_t kLargestFrame = std::int64_t{1} << 40;  ///< in bytes
/// Sets no limit on the number of values.
inline constexpr std::int64_t kAnyValues = std::numeric_limits<std::int64_t>::max();

/// Throws Error{Data} if a size is negative or the tensor would take more than kLargestFrame bytes.
void check_sizes(const FrameHeader& header);
/// Throws Error{Data} if the tensor has more than `most` values, so that a few received bytes
/// cannot make the receiver allocate unexpected memory.
void check_values(const FrameHeader& header, std::int64_t most);

/// The hash of a codec's registered name that the header holds.
std::uint16_t codec_tag(std::string_view name);
/// Bytes per value.
int size_of(FrameType type);

/// Writes the header into header.bytes() bytes.
void write_header(const FrameHeader& header, std::span<std::byte> into);
/// Reads and checks a header. Throws Error{Data} if the bytes are no frame, are truncated or differ
/// in number from what the header says, or if check_sizes() throws.
FrameHeader read_header(std::span<const std::byte> frame);

}  // namespace pipewright
