// SPDX-License-Identifier: Apache-2.0
/// Sends zeros as one bit each, so that a codec encodes only the other values: after a ReLU, about
/// half.
///
///   0 number m of values that are not 0 (8 bytes)
///   8  a bit for each value, 1 where it is not 0, least bits first, padded with zeros to 8 bytes
///      then the encoded m values
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// Bytes of a map of n values: the number and the bits.
constexpr std::int64_t zero_map_bytes(std::int64_t n) {
  return 8 + (n / 8 + (n % 8 != 0 ? 1 : 0) + 7) / 8 * 8;
}

/// Returns the nonzero values in order and writes the map, zero_map_bytes(values.size()) bytes.
std::vector<float> take_zeros_out(std::span<const float> values, std::span<std::byte> map);

/// The number of nonzero values in a message of n values that begins with a map. Throws Error{Data}
/// if the map is truncated, sets bits beyond n, or its number differs from its bits.
std::int64_t others_of(std::span<const std::byte> message, std::int64_t n);

/// Writes all values to `into`: `others`, others_of() values, at the set bits and 0 elsewhere.
void put_zeros_in(std::span<const std::byte> map, std::span<const float> others,
                  std::span<float> into);

}  // namespace pipewright
