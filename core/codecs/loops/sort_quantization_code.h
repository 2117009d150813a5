/// Sort quantization of float32 values to bytes and back, without LibTorch.
///
/// The values are cut by rank into 2^S groups of equal size (the first n mod 2^S hold one more),
/// and those of a group are rounded to 2^Q levels from its least to its greatest value:
///
///   step_g = (high_g − low_g) / (2^Q − 1)      q = round_half_even((x − low_g) / step_g)
///   code   = g·2^Q + q                         x′ = low_g + q·step_g
///
/// Everything in float32 with real divisions; q = 0 where a step is 0. A value equal to the
/// greatest of two groups belongs to the lower one. If there are fewer than 2^S values, S is the
/// largest that leaves none of the groups empty.
///
///   0  version 1   1  Q   2  S   3  flags   4  0 (4 bytes)
///   8  (low, step) of each group, float32   8 + 8·2^S  codes, padded with zeros to 8 bytes
///
/// Codes are fields of Q + S bits side by side, or (flag 1) each in an int8, or int16 where Q + S
/// is more than 8; a sum of just 8 or 16 makes those signed: 2^(Q+S−1) is subtracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/codecs/loops/pieces.h"

namespace pipewright {

inline constexpr int kMostCodeBits = 16;

struct SortQuantization {
  int bits = 6;            ///< Q, at least 1
  int split = 2;           ///< S, at least 0; Q + S ≤ kMostCodeBits
  bool container = false;  ///< whole bytes for a code
  bool sampled = false;  ///< limits between groups come from a sample: their sizes differ a little

  /// The same for n values: with fewer groups if there would be empty ones.
  SortQuantization for_values(std::int64_t n) const;
  int code_bits() const { return bits + split; }
  /// Bits that a code takes.
  int field_bits() const { return container ? (code_bits() <= 8 ? 8 : 16) : code_bits(); }
  std::int64_t groups() const { return std::int64_t{1} << split; }
  /// Of n values, header included.
  std::int64_t payload_bytes(std::int64_t n) const;
};

struct QuantizedGroup {
  float low, step;
  float high;  ///< the greatest value that belongs here; not sent
};

/// Groups of the values; nothing where one is not finite, or where a group's range is too wide for
/// float32 numbers. Zeros are +0.
std::optional<std::vector<QuantizedGroup>> find_groups(const SortQuantization& settings,
                                                       std::span<const float> values,
                                                       const ForPieces& pieces = in_one_piece);

/// into: settings.payload_bytes(); groups as find_groups() gave them for these values.
void encode_groups(const SortQuantization& settings, std::span<const QuantizedGroup> groups,
                   std::span<const float> values, std::span<std::byte> into,
                   const ForPieces& pieces = in_one_piece);

/// The settings that a payload of n values says it was made with (sampled: not said). Throws
/// Error{Data} where its header or its size cannot be right: then no memory is needed for values.
SortQuantization read_quantized(std::span<const std::byte> payload, std::int64_t n);

/// Throws Error{Data} for bytes that encode_groups() does not make.
void decode_quantized(std::span<const std::byte> payload, std::span<float> into,
                      const ForPieces& pieces = in_one_piece);

}  // namespace pipewright
