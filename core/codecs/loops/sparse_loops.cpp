// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/sparse_loops.h"

#include <algorithm>
#include <array>
#include <bit>

namespace pipewright {
namespace {

std::uint32_t magnitude(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

struct Digit {
  int shift, bits;
};
/// The digits of a magnitude's 31 bits, highest first.
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};
constexpr std::uint32_t kDigitOfInfinity = 0x7f8;  ///< first digit of infinity and NaN

/// Calls take(i) for the index of each chosen value, ascending.
template <class Take>
void each_chosen(std::span<const float> x, Chosen chosen, const Take& take) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t m = magnitude(x[i]);
    if (m < chosen.least) continue;
    if (m == chosen.least && chosen.ties-- == 0) {
      chosen.ties = 0;
      continue;
    }
    take(i);
  }
}

}  // namespace

Chosen choose_largest(std::span<const float> x, std::size_t k) {
  std::uint32_t prefix = 0;
  for (const Digit digit : kDigits) {
    std::array<std::size_t, 2048> counts{};
    const std::uint32_t mask = (1U << digit.bits) - 1;
    if (digit.shift == 20) {
      for (const float value : x) ++counts[magnitude(value) >> 20];
      if (std::any_of(counts.begin() + kDigitOfInfinity, counts.end(),
                      [](auto n) { return n > 0; }))
        return {.finite = false};
    } else {
      for (const float value : x)
        if (magnitude(value) >> (digit.shift + digit.bits) == prefix)
          ++counts[magnitude(value) >> digit.shift & mask];
    }
    std::uint32_t bin = mask;
    for (; counts[bin] < k; --bin) k -= counts[bin];
    prefix = prefix << digit.bits | bin;
  }
  return {.least = prefix, .ties = k};
}

void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::uint32_t> positions) {
  std::size_t done = 0;
  each_chosen(x, chosen, [&](std::size_t i) {
    values[done] = x[i];
    positions[done++] = static_cast<std::uint32_t>(i);
  });
}

void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::byte> bits) {
  std::ranges::fill(bits, std::byte{0});
  std::size_t done = 0;
  each_chosen(x, chosen, [&](std::size_t i) {
    values[done++] = x[i];
    bits[i / 8] |= static_cast<std::byte>(1U << (i % 8));
  });
}

bool scatter(std::span<const float> values, std::span<const std::uint32_t> positions,
             std::span<float> x) {
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (positions[i] < least || positions[i] >= x.size()) return false;
    x[positions[i]] = values[i];
    least = std::uint64_t{positions[i]} + 1;
  }
  return true;
}

bool scatter(std::span<const float> values, std::span<const std::byte> bits, std::span<float> x) {
  std::size_t done = 0;
  for (std::size_t byte = 0; byte < bits.size(); ++byte)
    for (auto left = std::to_integer<std::uint32_t>(bits[byte]); left != 0; left &= left - 1) {
      const std::size_t at = 8 * byte + static_cast<std::size_t>(std::countr_zero(left));
      if (at >= x.size() || done == values.size()) return false;
      x[at] = values[done++];
    }
  return done == values.size();
}

}  // namespace pipewright
