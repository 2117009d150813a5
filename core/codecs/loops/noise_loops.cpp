// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/noise_loops.h"

#include "core/base/random.h"
#include "core/base/vectorised.h"

namespace pipewright {
namespace {

constexpr std::size_t kLanes = 16;  ///< blocks computed side by side

float unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
}

/// Computes philox() of core/base/random.h for kLanes consecutive blocks.
PIPEWRIGHT_VECTORISED void noise_of_blocks(std::uint64_t key, std::uint64_t high,
                                           std::uint64_t block, float* noise) {
  std::uint32_t a[kLanes], b[kLanes], c[kLanes], d[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) {
    a[i] = static_cast<std::uint32_t>(block + i);
    b[i] = static_cast<std::uint32_t>((block + i) >> 32);
    c[i] = static_cast<std::uint32_t>(high);
    d[i] = static_cast<std::uint32_t>(high >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * a[i],
                          p1 = std::uint64_t{0xCD9E8D57} * c[i];
      a[i] = static_cast<std::uint32_t>(p1 >> 32) ^ b[i] ^ k0;
      b[i] = static_cast<std::uint32_t>(p1);
      c[i] = static_cast<std::uint32_t>(p0 >> 32) ^ d[i] ^ k1;
      d[i] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    noise[4 * i] = unit(a[i]);
    noise[4 * i + 1] = unit(b[i]);
    noise[4 * i + 2] = unit(c[i]);
    noise[4 * i + 3] = unit(d[i]);
  }
}

}  // namespace

void uniform_noise(std::uint64_t key, std::uint64_t high, std::uint64_t first,
                   std::span<float> noise) {
  std::size_t i = 0;
  const auto one = [&] {
    noise[i] = unit(philox(key, (first + i) / 4, high)[(first + i) % 4]);
    ++i;
  };
  while (i < noise.size() && (first + i) % 4 != 0) one();
  for (; i + 4 * kLanes <= noise.size(); i += 4 * kLanes)
    noise_of_blocks(key, high, (first + i) / 4, noise.data() + i);
  while (i < noise.size()) one();
}

}  // namespace pipewright
