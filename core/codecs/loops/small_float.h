// SPDX-License-Identifier: Apache-2.0
/// Floats of few bits, with a sign, exponent, mantissa and subnormals. Without LibTorch.
#pragma once

#include <bit>
#include <cstdint>

namespace pipewright {

struct SmallFloat {
  int exponent_bits = 0, mantissa_bits = 0;
  std::int32_t top = 0;  ///< code of the largest value; larger values saturate to it

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// floor(log2) of the largest value.
  constexpr int largest_exponent() const { return (top >> mantissa_bits) - bias(); }
};

inline constexpr SmallFloat kE4M3{4, 3, 0x7e};     ///< up to 448
inline constexpr SmallFloat kE5M2{5, 2, 0x7b};     ///< up to 57344
inline constexpr SmallFloat kE2M3{2, 3, 0x1f};     ///< up to 7.5
inline constexpr SmallFloat kE3M2{3, 2, 0x1f};     ///< up to 28
inline constexpr SmallFloat kE2M1{2, 1, 0x7};      ///< up to 6
inline constexpr SmallFloat kHalf{5, 10, 0x7bff};  ///< up to 65504
inline constexpr SmallFloat kHalfOrInfinity{5, 10, 0x7c00};
inline constexpr SmallFloat kBFloat16{8, 7, 0x7f80};  ///< larger values become infinite

/// Constants for rounding float32 bits to a format.
struct SmallRounding {
  constexpr explicit SmallRounding(SmallFloat format)
      : shift(23 - format.mantissa_bits),
        half((1 << (shift - 1)) - 1),
        rebias((127 - format.bias()) << format.mantissa_bits),
        least_normal((128 - format.bias()) << 23),
        unit((128 - format.bias() + shift) << 23),
        top(format.top),
        sign(32 - format.bits()) {}

  std::int32_t shift;         ///< mantissa bits that are dropped
  std::int32_t half;          ///< added with the last remaining bit, it rounds to nearest even
  std::int32_t rebias;        ///< difference of the exponents' biases
  std::int32_t least_normal;  ///< values below are subnormal
  std::int32_t unit;          ///< a float whose last bit has the value of the least subnormal
  std::int32_t top;
  std::int32_t sign;  ///< shift of the sign from bit 31
};

/// Code of the value nearest to x, ties to even, saturated at the largest value.
constexpr std::uint32_t small_code(float x, SmallRounding r) {
  const auto all = std::bit_cast<std::uint32_t>(x);
  const auto bits = static_cast<std::int32_t>(all & 0x7fffffffU);
  // Without a sign: a NaN of all ones would overflow.
  const std::uint32_t rounded =
      (all & 0x7fffffffU) + static_cast<std::uint32_t>(r.half + ((bits >> r.shift) & 1));
  const std::int32_t normal = static_cast<std::int32_t>(rounded >> r.shift) - r.rebias;
  const float tiny = std::bit_cast<float>(bits) + std::bit_cast<float>(r.unit);
  const std::int32_t subnormal = std::bit_cast<std::int32_t>(tiny) - r.unit;
  const std::int32_t few = (bits - r.least_normal) >> 31;  // all bits or none: no branch
  const std::int32_t code = (subnormal & few) | (normal & ~few);
  return static_cast<std::uint32_t>(code < r.top ? code : r.top) | ((all & 0x80000000U) >> r.sign);
}

constexpr float small_value(std::uint32_t code, SmallFloat format) {
  const std::uint32_t mantissas = 1U << format.mantissa_bits;
  const std::uint32_t exponent = (code & ((1U << (format.bits() - 1)) - 1)) / mantissas;
  const std::uint32_t mantissa = code % mantissas;
  const bool negative = (code >> (format.bits() - 1) & 1) != 0;
  float value = static_cast<float>(exponent == 0 ? mantissa : mantissa + mantissas);
  const int power =
      static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits;
  for (int i = 0; i < power; ++i) value *= 2;
  for (int i = 0; i > power; --i) value /= 2;
  return negative ? -value : value;
}

}  // namespace pipewright
