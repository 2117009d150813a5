// SPDX-License-Identifier: Apache-2.0
/// Sort quantization of float32 values to bytes and back. Without LibTorch.
///
/// The values are cut by rank into 2^S groups of equal size (the first n mod 2^S have one value
/// more), and each group is rounded to 2^Q levels from its least to its greatest value:
///
///   step_g = (high_g − low_g) / (2^Q − 1)      q = round_half_even((x − low_g) / step_g)
///   code   = g·2^Q + q                         x′ = low_g + q·step_g
///
/// All arithmetic is float32 with real divisions; q = 0 if the step is 0. A value equal to the
/// greatest value of several groups belongs to the lowest of them. With fewer than 2^S values, S is
/// reduced to the largest number that leaves no group empty.
///
///   0  version 1   1  Q   2  S   3  flags   4  0 (4 bytes)
///   8  (low, step) of each group, float32   8 + 8·2^S  codes, padded with zeros to 8 bytes
///
/// Codes are packed fields of Q + S bits. With flag 1 (container) each code is an integer of 8
/// bits, or of 16 bits if Q + S > 8; if Q + S is exactly 8 or 16, it is stored signed, as code −
/// 2^(Q+S−1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/codecs/loops/pieces.h"

namespace pipewright {

inline constexpr int kMostCodeBits = 16;
inline constexpr std::int64_t kSampleOfLimits = 1 << 16;  ///< values that `sampled` looks at

struct SortQuantization {
  int bits = 6;            ///< Q, at least 1
  int split = 2;           ///< S, at least 0; Q + S ≤ kMostCodeBits
  bool container = false;  ///< codes take 8 or 16 bits each
  bool sampled = false;    ///< limits come from a sample: group sizes differ a little

  /// The settings for n values: with fewer groups if some would be empty.
  SortQuantization for_values(std::int64_t n) const;
  int code_bits() const { return bits + split; }
  /// Bits that a code takes in the payload.
  int field_bits() const { return container ? (code_bits() <= 8 ? 8 : 16) : code_bits(); }
  /// Bits of a code to invert: the highest one if the code fills its container, which is signed.
  unsigned flip() const {
    return container && (code_bits() == 8 || code_bits() == 16) ? 1u << (code_bits() - 1) : 0;
  }
  std::int64_t groups() const { return std::int64_t{1} << split; }
  /// Whether limits come from a sample, which has values and not ranks: equal values share a group.
  bool samples() const { return sampled && split > 0; }
  /// Payload bytes of n values, header included.
  std::int64_t payload_bytes(std::int64_t n) const;
};

struct QuantizedGroup {
  float low, step;
  float high;  ///< greatest value of the group; not sent
};

/// Finds the groups of the values. Returns nothing if a value is not finite or a group's range
/// overflows float32. Zeros are +0.
std::optional<std::vector<QuantizedGroup>> find_groups(const SortQuantization& settings,
                                                       std::span<const float> values,
                                                       const ForPieces& pieces = in_one_piece);

/// Writes settings.payload_bytes() bytes. `groups` must come from find_groups() for these values.
void encode_groups(const SortQuantization& settings, std::span<const QuantizedGroup> groups,
                   std::span<const float> values, std::span<std::byte> into,
                   const ForPieces& pieces = in_one_piece);

/// Reads the settings of a payload of n values (all but `sampled`, which is not stored). Throws
/// Error{Data} if the header or the size is invalid, so that no memory is allocated for the values.
SortQuantization read_quantized(std::span<const std::byte> payload, std::int64_t n);

/// Decodes a payload. Throws Error{Data} for bytes that encode_groups() cannot make.
void decode_quantized(std::span<const std::byte> payload, std::span<float> into,
                      const ForPieces& pieces = in_one_piece);

}  // namespace pipewright
