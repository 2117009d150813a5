/// Zeros as a bit each, so that codecs see only the other values: after a ReLU, half of them.
///
///   0  number m of values that are not 0 (8 bytes)
///   8  a bit for each value, 1 where it is not 0, least bits first, padded with zeros to 8 bytes
///      then what stands for the m values
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// Bytes of number and bits, for n values.
constexpr std::int64_t zero_map_bytes(std::int64_t n) {
  return 8 + (n / 8 + (n % 8 != 0 ? 1 : 0) + 7) / 8 * 8;
}

/// The values that are not 0, in their order. map: zero_map_bytes().
std::vector<float> take_zeros_out(std::span<const float> values, std::span<std::byte> map);

/// The number that a message beginning with a map says, for n values. Throws Error{Data} where
/// there is no such map, or its bits are not so many.
std::int64_t others_of(std::span<const std::byte> message, std::int64_t n);

/// others: as many as others_of(); into: all values.
void put_zeros_in(std::span<const std::byte> map, std::span<const float> others,
                  std::span<float> into);

}  // namespace pipewright
