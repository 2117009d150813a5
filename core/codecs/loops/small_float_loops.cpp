// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/small_float_loops.h"

#include "core/base/vectorised.h"

namespace pipewright {
namespace {

template <SmallFloat kFormat>
[[gnu::always_inline]] inline bool convert(const float* x, std::size_t n, std::uint16_t* codes) {
  constexpr SmallRounding kRounding(kFormat);
  std::uint32_t largest = 0;
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU;
    largest = bits > largest ? bits : largest;
    codes[i] = static_cast<std::uint16_t>(small_code(x[i], kRounding));
  }
  return largest < 0x7f800000U;
}

PIPEWRIGHT_VECTORISED bool halves(const float* x, std::size_t n, std::uint16_t* codes) {
  return convert<kHalfOrInfinity>(x, n, codes);
}

PIPEWRIGHT_VECTORISED bool saturated_halves(const float* x, std::size_t n, std::uint16_t* codes) {
  return convert<kHalf>(x, n, codes);
}

PIPEWRIGHT_VECTORISED bool bfloat16(const float* x, std::size_t n, std::uint16_t* codes) {
  return convert<kBFloat16>(x, n, codes);
}

PIPEWRIGHT_VECTORISED void multiplied(const float* x, std::size_t n, float factor, SmallRounding r,
                                      std::uint16_t* codes) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i)
    codes[i] = static_cast<std::uint16_t>(small_code(x[i] * factor, r));
}

PIPEWRIGHT_VECTORISED void divided(const float* x, std::size_t n, float divisor, SmallRounding r,
                                   std::uint16_t* codes) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i)
    codes[i] = static_cast<std::uint16_t>(small_code(x[i] / divisor, r));
}

}  // namespace

void small_codes(std::span<const float> x, float factor, SmallFloat format,
                 std::span<std::uint16_t> codes) {
  multiplied(x.data(), x.size(), factor, SmallRounding(format), codes.data());
}

void divided_codes(std::span<const float> x, float divisor, SmallFloat format,
                   std::span<std::uint16_t> codes) {
  divided(x.data(), x.size(), divisor, SmallRounding(format), codes.data());
}

bool to_halves(std::span<const float> x, std::uint16_t* codes) {
  return halves(x.data(), x.size(), codes);
}

bool to_saturated_halves(std::span<const float> x, std::uint16_t* codes) {
  return saturated_halves(x.data(), x.size(), codes);
}

bool to_bfloat16(std::span<const float> x, std::uint16_t* codes) {
  return bfloat16(x.data(), x.size(), codes);
}

}  // namespace pipewright
