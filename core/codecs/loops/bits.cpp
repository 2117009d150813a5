// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/vectorised.h"

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little);

using Word = std::uint64_t;

constexpr Word low(int bits) {
  return bits >= 64 ? ~Word{0} : (Word{1} << bits) - 1;
}

// A word is divided into lanes, each with a field in its lowest bits. together() moves the fields
// of neighbouring lanes together, which leaves half as many lanes, twice as wide; apart() is the
// inverse.

/// A mask of the lowest kBits of every other lane.
template <int kLane, int kBits>
constexpr Word kEveryOther = low(kBits) * (~Word{0} / low(2 * kLane));

template <int kLane, int kBits>
[[gnu::always_inline]] inline Word together(Word x) {
  constexpr Word kFirst = kEveryOther<kLane, kBits>;
  return (x & kFirst) | ((x >> (kLane - kBits)) & (kFirst << kBits));
}

template <int kLane, int kBits>
[[gnu::always_inline]] inline Word apart(Word x) {
  constexpr Word kFirst = kEveryOther<kLane, kBits>;
  return (x & kFirst) | ((x & (kFirst << kBits)) << (kLane - kBits));
}

/// Eight codes as they lie in memory or, once joined, their fields in the lowest 8·kBits bits.
template <class Code>
struct Octet {
  std::array<Word, sizeof(Code)> words;
};

template <int kBits>
[[gnu::always_inline]] inline void join(Octet<std::uint8_t>& octet) {
  Word& x = octet.words[0];
  x = together<32, 4 * kBits>(together<16, 2 * kBits>(together<8, kBits>(x)));
}

template <int kBits>
[[gnu::always_inline]] inline void part(Octet<std::uint8_t>& octet) {
  Word& x = octet.words[0];
  x = apart<8, kBits>(apart<16, 2 * kBits>(apart<32, 4 * kBits>(x)));
}

template <int kBits>
[[gnu::always_inline]] inline void join(Octet<std::uint16_t>& octet) {
  auto& [first, second] = octet.words;
  first = together<32, 2 * kBits>(together<16, kBits>(first));
  second = together<32, 2 * kBits>(together<16, kBits>(second));
  first |= second << (4 * kBits);
  second >>= 64 - 4 * kBits;
}

template <int kBits>
[[gnu::always_inline]] inline void part(Octet<std::uint16_t>& octet) {
  auto& [first, second] = octet.words;
  second = (first >> (4 * kBits)) | (second << (64 - 4 * kBits));
  first = apart<16, kBits>(apart<32, 2 * kBits>(first));
  second = apart<16, kBits>(apart<32, 2 * kBits>(second));
}

template <class Code>
constexpr int kWidth = 8 * sizeof(Code);

/// Packs all codes. As long as there is room, it writes whole octets, beyond their own 8·kBits
/// bits; the next octet overwrites the excess. unpack_all() likewise reads whole octets.
template <class Code, int kBits>
void pack_all(const Code* codes, std::size_t n, std::byte* into, std::size_t bytes) {
  Octet<Code> octet;
  std::size_t i = 0, at = 0;
  for (; i + 8 <= n && at + sizeof octet <= bytes; i += 8, at += kBits) {
    std::memcpy(&octet, codes + i, sizeof octet);
    join<kBits>(octet);
    std::memcpy(into + at, &octet, sizeof octet);
  }
  for (; i < n; i += 8, at += kBits) {
    octet = {};
    std::memcpy(&octet, codes + i, sizeof(Code) * std::min<std::size_t>(8, n - i));
    join<kBits>(octet);
    std::memcpy(into + at, &octet, std::min<std::size_t>(kBits, bytes - at));
  }
}

template <class Code, int kBits>
void unpack_all(const std::byte* from, std::size_t bytes, Code* codes, std::size_t n) {
  Octet<Code> octet;
  std::size_t i = 0, at = 0;
  for (; i + 8 <= n && at + sizeof octet <= bytes; i += 8, at += kBits) {
    std::memcpy(&octet, from + at, sizeof octet);
    part<kBits>(octet);
    std::memcpy(codes + i, &octet, sizeof octet);
  }
  for (; i < n; i += 8, at += kBits) {
    octet = {};
    std::memcpy(&octet, from + at, std::min<std::size_t>(kBits, bytes - at));
    part<kBits>(octet);
    std::memcpy(codes + i, &octet, sizeof(Code) * std::min<std::size_t>(8, n - i));
  }
}

PIPEWRIGHT_VECTORISED void narrow(const std::uint16_t* codes, std::size_t n, std::uint8_t* into) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) into[i] = static_cast<std::uint8_t>(codes[i]);
}

PIPEWRIGHT_VECTORISED void widen(const std::uint8_t* from, std::size_t n, std::uint16_t* codes) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) codes[i] = from[i];
}

/// Codes of at most 8 bits are narrowed to bytes in pieces of this length, as a word holds twice as
/// many of them.
constexpr std::size_t kNarrowed = 512;

template <int kBits>
void pack_narrowed(const std::uint16_t* codes, std::size_t n, std::byte* into, std::size_t bytes) {
  std::uint8_t narrowed[kNarrowed];
  for (std::size_t i = 0; i < n; i += kNarrowed) {
    const std::size_t piece = std::min(kNarrowed, n - i), at = i / 8 * kBits;
    narrow(codes + i, piece, narrowed);
    pack_all<std::uint8_t, kBits>(narrowed, piece, into + at, bytes - at);
  }
}

template <int kBits>
void unpack_narrowed(const std::byte* from, std::size_t bytes, std::uint16_t* codes,
                     std::size_t n) {
  std::uint8_t narrowed[kNarrowed];
  for (std::size_t i = 0; i < n; i += kNarrowed) {
    const std::size_t piece = std::min(kNarrowed, n - i), at = i / 8 * kBits;
    unpack_all<std::uint8_t, kBits>(from + at, bytes - at, narrowed, piece);
    widen(narrowed, piece, codes + i);
  }
}

template <class Code>
struct Packing {
  void (*pack)(const Code* codes, std::size_t n, std::byte* into, std::size_t bytes);
  void (*unpack)(const std::byte* from, std::size_t bytes, Code* codes, std::size_t n);
};

/// Selects the loops for a width. Codes that fill their type are copied; codes of 8 bits are cast.
template <class Code, int kBits>
constexpr Packing<Code> packing() {
  if constexpr (kBits == kWidth<Code>)
    return {[](const Code* codes, std::size_t, std::byte* into, std::size_t bytes) {
              std::memcpy(into, codes, bytes);
            },
            [](const std::byte* from, std::size_t bytes, Code* codes, std::size_t) {
              std::memcpy(codes, from, bytes);
            }};
  else if constexpr (kBits == 8)
    return {[](const Code* codes, std::size_t n, std::byte* into, std::size_t) {
              narrow(codes, n, reinterpret_cast<std::uint8_t*>(into));
            },
            [](const std::byte* from, std::size_t, Code* codes, std::size_t n) {
              widen(reinterpret_cast<const std::uint8_t*>(from), n, codes);
            }};
  else if constexpr (kBits < 8 && sizeof(Code) == 2)
    return {pack_narrowed<kBits>, unpack_narrowed<kBits>};
  else
    return {pack_all<Code, kBits>, unpack_all<Code, kBits>};
}

/// The loops for b bits are at index b − 1.
template <class Code>
constexpr auto kPackings = []<int... kLess>(std::integer_sequence<int, kLess...>) {
  return std::array{packing<Code, kLess + 1>()...};
}
(std::make_integer_sequence<int, kWidth<Code>>());

template <class Code>
const Packing<Code>& packing_of(std::size_t codes, int bits, std::size_t bytes) {
  PIPEWRIGHT_CHECK(bits >= 1 && bits <= kWidth<Code>, bits, " bits a value");
  PIPEWRIGHT_CHECK(
      bytes == static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(codes), bits)),
      codes, " values of ", bits, " bits, ", bytes, " bytes");
  return kPackings<Code>[static_cast<std::size_t>(bits) - 1];
}

template <class Code>
void pack_any(std::span<const Code> codes, int bits, std::span<std::byte> into) {
  const Packing<Code>& way = packing_of<Code>(codes.size(), bits, into.size());
  if (codes.empty()) return;  // no memory to copy from
  way.pack(codes.data(), codes.size(), into.data(), into.size());
}

template <class Code>
void unpack_any(std::span<const std::byte> from, int bits, std::span<Code> codes) {
  const Packing<Code>& way = packing_of<Code>(codes.size(), bits, from.size());
  if (codes.empty()) return;
  way.unpack(from.data(), from.size(), codes.data(), codes.size());
}

}  // namespace

void pack(std::span<const std::uint8_t> codes, int bits, std::span<std::byte> into) {
  pack_any(codes, bits, into);
}
void pack(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into) {
  pack_any(codes, bits, into);
}
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint8_t> codes) {
  unpack_any(from, bits, codes);
}
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint16_t> codes) {
  unpack_any(from, bits, codes);
}

void BitWriter::flush() {
  const auto bytes =
      static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(filled_), bits_));
  pack(std::span<const std::uint16_t>(codes_, filled_), bits_, into_.first(bytes));
  into_ = into_.subspan(bytes);
  filled_ = 0;
}

void BitReader::fetch() {
  const auto bits = static_cast<std::size_t>(bits_);
  held_ = std::min(BitWriter::kChunk, from_.size() * 8 / bits);
  PIPEWRIGHT_CHECK(held_ > 0, "more values are read than there are");
  const auto bytes =
      static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(held_), bits_));
  unpack(from_.first(bytes), bits_, std::span(codes_, held_));
  from_ = from_.subspan(bytes);
  at_ = 0;
}

}  // namespace pipewright
