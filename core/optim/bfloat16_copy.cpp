// SPDX-License-Identifier: Apache-2.0
#include "core/optim/bfloat16_copy.h"

#include <bit>

#include "core/base/vectorised.h"

namespace pipewright {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000, kMagnitude = 0x7fffffff, kNan = 0x7fc0;

/// Adding just under half a unit, or half a unit where the last bit kept is odd, carries into it.
inline std::uint16_t rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & kMagnitude) > kInfinity ? kNan : nearest);
}

}  // namespace

void copy_to_bfloat16(const float* numbers, std::size_t n, std::uint16_t* copies) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) copies[i] = rounded(numbers[i]);
}

}  // namespace pipewright
