/// The bytes that cross an edge instead of a tensor: a header that says what is inside, then the
/// codec's payload. Little-endian, without LibTorch, so that whatever comes can be looked at before
/// a tensor is made.
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
  /// Of the registered name, so that ends with different codecs do not understand each other.
  std::uint16_t codec = 0;
  FrameType type = FrameType::Float32;  ///< of the tensor that was encoded
  bool raw = false;                     ///< the payload is the values as they are: no codec's
  std::vector<std::int64_t> sizes;      ///< of the tensor
  std::int64_t payload = 0;             ///< bytes

  std::int64_t values() const;
  std::int64_t bytes() const { return 16 + 8 * static_cast<std::int64_t>(sizes.size()); }
  bool operator==(const FrameHeader&) const = default;
};

inline constexpr std::size_t kMostDimensions = 16;
inline constexpr std::int64_t kLargestFrame = std::int64_t{1} << 40;  ///< bytes of a tensor
/// As many values as a frame can have.
inline constexpr std::int64_t kAnyValues = std::numeric_limits<std::int64_t>::max();

/// Throws Error{Data} where no tensor has these sizes, or only one of more than kLargestFrame
/// bytes.
void check_sizes(const FrameHeader& header);
/// Throws Error{Data} where the tensor has more than `most` values: bytes that stand for far more
/// values than they are themselves must not take memory that nobody expects to be used.
void check_values(const FrameHeader& header, std::int64_t most);

std::uint16_t codec_tag(std::string_view name);
/// Bytes of a value.
int size_of(FrameType type);

/// into: header.bytes() bytes.
void write_header(const FrameHeader& header, std::span<std::byte> into);
/// Throws Error{Data} where the frame is none, is cut off, or has more or fewer bytes than it says;
/// sizes multiply to at most kLargestFrame bytes.
FrameHeader read_header(std::span<const std::byte> frame);

}  // namespace pipewright
