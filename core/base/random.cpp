// SPDX-License-Identifier: Apache-2.0
#include "core/base/random.h"

#include <cmath>
#include <numbers>

namespace pipewright {

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                    std::uint64_t counter_high) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::array<std::uint32_t, 4> c{low(counter_low), high(counter_low), low(counter_high),
                                 high(counter_high)};
  std::uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c[0], p1 = kMultiplier1 * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

namespace {

std::uint64_t combined(std::uint64_t a, std::uint64_t b) {
  const auto words = philox(a, b, 0x70697065);
  return (std::uint64_t{words[0]} << 32) | words[1];
}

std::uint64_t joined(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

double unit(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t a,
                           std::uint64_t b)
    : key_(combined(seed, stable_hash(purpose))), high_(combined(a, b)) {}

std::array<std::uint32_t, 4> RandomStream::block(std::uint64_t index) const {
  return philox(key_, index, high_);
}

std::uint32_t RandomStream::bits(std::uint64_t index) const {
  return block(index / 4)[index % 4];
}

double RandomStream::uniform(std::uint64_t index) const {
  const auto words = block(index);
  return unit(joined(words[0], words[1]));
}

double RandomStream::normal(std::uint64_t index) const {
  const auto words = block(index);
  const double radius = std::sqrt(-2 * std::log(1 - unit(joined(words[0], words[1]))));
  return radius * std::cos(2 * std::numbers::pi * unit(joined(words[2], words[3])));
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t n) const {
  const auto words = block(index);
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(joined(words[0], words[1])) * n;
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace pipewright
