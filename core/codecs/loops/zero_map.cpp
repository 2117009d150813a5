// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/zero_map.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

/// Counts the set bits; the number of bytes must be a multiple of 8.
std::int64_t ones(std::span<const std::byte> bytes) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    count += std::popcount(word);
  }
  return count;
}

}  // namespace

std::vector<float> take_zeros_out(std::span<const float> values, std::span<std::byte> map) {
  const std::span<std::byte> bits = map.subspan(8);
  std::ranges::fill(bits, std::byte{0});
  for (std::size_t i = 0; i < values.size(); ++i)
    bits[i / 8] |= static_cast<std::byte>((values[i] != 0 ? 1u : 0u) << (i % 8));
  const std::int64_t count = ones(bits);
  std::memcpy(map.data(), &count, 8);
  std::vector<float> others(as_size(count) + 1);  // one more, as the loop also stores zeros
  std::size_t at = 0;
  for (const float value : values) {
    others[at] = value;
    at += value != 0 ? 1 : 0;
  }
  others.pop_back();
  return others;
}

std::int64_t others_of(std::span<const std::byte> message, std::int64_t n) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::Data, "a compressed message is damaged: " + what);
  };
  if (std::ssize(message) < zero_map_bytes(n))
    refuse(concat("it has ", message.size(), " bytes, a map of zeros has ", zero_map_bytes(n)));
  std::int64_t said;
  std::memcpy(&said, message.data(), 8);
  const std::span<const std::byte> bits = message.first(as_size(zero_map_bytes(n))).subspan(8);
  const std::size_t whole = as_size(n / 8);
  const unsigned last =
      n % 8 == 0 ? 0 : std::to_integer<unsigned>(bits[whole]) >> (n % 8);  // beyond the values
  const auto beyond = bits.subspan(std::min(bits.size(), whole + (n % 8 == 0 ? 0 : 1)));
  if (last != 0 || std::ranges::any_of(beyond, [](std::byte b) { return b != std::byte{0}; }))
    refuse("its map of zeros is too long");
  if (ones(bits) != said)
    refuse(concat("its map of zeros has ", ones(bits), " values, not ", said));
  return said;
}

void put_zeros_in(std::span<const std::byte> map, std::span<const float> others,
                  std::span<float> into) {
  const std::span<const std::byte> bits = map.subspan(8);
  std::size_t at = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const bool other = ((std::to_integer<unsigned>(bits[i / 8]) >> (i % 8)) & 1) != 0;
    into[i] = other ? others[at] : 0.0f;
    at += other ? 1 : 0;
  }
}

}  // namespace pipewright
