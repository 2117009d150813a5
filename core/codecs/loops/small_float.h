/// Floats of few bits: a sign, exponent and mantissa, subnormals, no infinity. Without LibTorch.
#pragma once

#include <bit>
#include <cstdint>

namespace pipewright {

struct SmallFloat {
  int exponent_bits = 0, mantissa_bits = 0;
  std::int32_t top = 0;  ///< code of the largest value; what is larger becomes it

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// Of the largest value: floor(log2).
  constexpr int largest_exponent() const { return (top >> mantissa_bits) - bias(); }
};

inline constexpr SmallFloat kE4M3{4, 3, 0x7e};     ///< up to 448
inline constexpr SmallFloat kE5M2{5, 2, 0x7b};     ///< up to 57344
inline constexpr SmallFloat kE2M3{2, 3, 0x1f};     ///< up to 7.5
inline constexpr SmallFloat kE3M2{3, 2, 0x1f};     ///< up to 28
inline constexpr SmallFloat kE2M1{2, 1, 0x7};      ///< up to 6
inline constexpr SmallFloat kHalf{5, 10, 0x7bff};  ///< up to 65504
inline constexpr SmallFloat kHalfOrInfinity{5, 10, 0x7c00};
inline constexpr SmallFloat kBFloat16{8, 7, 0x7f80};  ///< above its largest: infinite

/// What rounding to a format needs, in float32's bits.
struct SmallRounding {
  constexpr explicit SmallRounding(SmallFloat format)
      : shift(23 - format.mantissa_bits),
        half((1 << (shift - 1)) - 1),
        rebias((127 - format.bias()) << format.mantissa_bits),
        least_normal((128 - format.bias()) << 23),
        unit((128 - format.bias() + shift) << 23),
        top(format.top),
        sign(32 - format.bits()) {}

  std::int32_t shift;         ///< of the mantissa
  std::int32_t half;          ///< added, with the last bit that stays: rounds to nearest even
  std::int32_t rebias;        ///< between the exponents' biases
  std::int32_t least_normal;  ///< below, values have fewer bits
  std::int32_t unit;          ///< a number whose last bit is worth the least subnormal
  std::int32_t top;
  std::int32_t sign;  ///< from bit 31 down to where it is
};

/// Code of the value nearest to x, ties to even, at most the largest.
constexpr std::uint32_t small_code(float x, SmallRounding r) {
  const auto all = std::bit_cast<std::uint32_t>(x);
  const auto bits = static_cast<std::int32_t>(all & 0x7fffffffU);
  const std::int32_t normal = ((bits + r.half + ((bits >> r.shift) & 1)) >> r.shift) - r.rebias;
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
