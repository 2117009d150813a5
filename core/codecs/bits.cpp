#include "core/codecs/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/codecs/vectorised.h"

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little);

__extension__ using Wide = unsigned __int128;

/// Eight fields: `bits` whole bytes.
template <int kBits>
using Word = std::conditional_t<kBits <= 8, std::uint64_t, Wide>;

template <int kBits>
[[gnu::always_inline]] inline void pack_eights(const std::uint16_t* codes, std::size_t eights,
                                               std::byte* into) {
  for (std::size_t k = 0; k < eights; ++k, codes += 8, into += kBits) {
    Word<kBits> word = 0;
    for (int j = 0; j < 8; ++j) word |= static_cast<Word<kBits>>(codes[j]) << (j * kBits);
    std::memcpy(into, &word, kBits);
  }
}

template <int kBits>
[[gnu::always_inline]] inline void unpack_eights(const std::byte* from, std::size_t eights,
                                                 std::uint16_t* codes) {
  for (std::size_t k = 0; k < eights; ++k, codes += 8, from += kBits) {
    Word<kBits> word = 0;
    std::memcpy(&word, from, kBits);
    for (int j = 0; j < 8; ++j)
      codes[j] = static_cast<std::uint16_t>((word >> (j * kBits)) & ((1U << kBits) - 1));
  }
}

PIPEWRIGHT_VECTORISED void narrow(const std::uint16_t* codes, std::size_t n, std::uint8_t* into) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) into[i] = static_cast<std::uint8_t>(codes[i]);
}

PIPEWRIGHT_VECTORISED void widen(const std::uint8_t* from, std::size_t n, std::uint16_t* codes) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) codes[i] = from[i];
}

void pack_whole(const std::uint16_t* codes, std::size_t eights, int bits, std::byte* into) {
  switch (bits) {
    case 1: return pack_eights<1>(codes, eights, into);
    case 2: return pack_eights<2>(codes, eights, into);
    case 3: return pack_eights<3>(codes, eights, into);
    case 4: return pack_eights<4>(codes, eights, into);
    case 5: return pack_eights<5>(codes, eights, into);
    case 6: return pack_eights<6>(codes, eights, into);
    case 7: return pack_eights<7>(codes, eights, into);
    case 8: return narrow(codes, 8 * eights, reinterpret_cast<std::uint8_t*>(into));
    case 9: return pack_eights<9>(codes, eights, into);
    case 10: return pack_eights<10>(codes, eights, into);
    case 11: return pack_eights<11>(codes, eights, into);
    case 12: return pack_eights<12>(codes, eights, into);
    case 13: return pack_eights<13>(codes, eights, into);
    case 14: return pack_eights<14>(codes, eights, into);
    case 15: return pack_eights<15>(codes, eights, into);
    default: std::memcpy(into, codes, 16 * eights);
  }
}

void unpack_whole(const std::byte* from, std::size_t eights, int bits, std::uint16_t* codes) {
  switch (bits) {
    case 1: return unpack_eights<1>(from, eights, codes);
    case 2: return unpack_eights<2>(from, eights, codes);
    case 3: return unpack_eights<3>(from, eights, codes);
    case 4: return unpack_eights<4>(from, eights, codes);
    case 5: return unpack_eights<5>(from, eights, codes);
    case 6: return unpack_eights<6>(from, eights, codes);
    case 7: return unpack_eights<7>(from, eights, codes);
    case 8: return widen(reinterpret_cast<const std::uint8_t*>(from), 8 * eights, codes);
    case 9: return unpack_eights<9>(from, eights, codes);
    case 10: return unpack_eights<10>(from, eights, codes);
    case 11: return unpack_eights<11>(from, eights, codes);
    case 12: return unpack_eights<12>(from, eights, codes);
    case 13: return unpack_eights<13>(from, eights, codes);
    case 14: return unpack_eights<14>(from, eights, codes);
    case 15: return unpack_eights<15>(from, eights, codes);
    default: std::memcpy(codes, from, 16 * eights);
  }
}

void check(std::size_t codes, int bits, std::size_t bytes) {
  PIPEWRIGHT_CHECK(bits >= 1 && bits <= kMostBits, bits, " bits a value");
  PIPEWRIGHT_CHECK(
      bytes == static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(codes), bits)),
      codes, " values of ", bits, " bits, ", bytes, " bytes");
}

}  // namespace

void pack(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into) {
  check(codes.size(), bits, into.size());
  if (codes.empty()) return;  // no memory to copy from
  const std::size_t eights = codes.size() / 8, rest = codes.size() % 8;
  pack_whole(codes.data(), eights, bits, into.data());
  if (rest == 0) return;
  std::uint16_t last[8] = {};
  std::byte bytes[kMostBits];
  std::copy_n(codes.data() + 8 * eights, rest, last);
  pack_whole(last, 1, bits, bytes);
  const std::size_t done = eights * static_cast<std::size_t>(bits);
  std::copy_n(bytes, into.size() - done, into.data() + done);
}

void unpack(std::span<const std::byte> from, int bits, std::span<std::uint16_t> codes) {
  check(codes.size(), bits, from.size());
  if (codes.empty()) return;
  const std::size_t eights = codes.size() / 8, rest = codes.size() % 8;
  unpack_whole(from.data(), eights, bits, codes.data());
  if (rest == 0) return;
  std::uint16_t last[8];
  std::byte bytes[kMostBits] = {};
  const std::size_t done = eights * static_cast<std::size_t>(bits);
  std::copy_n(from.data() + done, from.size() - done, bytes);
  unpack_whole(bytes, 1, bits, last);
  std::copy_n(last, rest, codes.data() + 8 * eights);
}

void BitWriter::flush() {
  const auto bytes =
      static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(filled_), bits_));
  pack({codes_, filled_}, bits_, into_.first(bytes));
  into_ = into_.subspan(bytes);
  filled_ = 0;
}

void BitReader::fetch() {
  const auto bits = static_cast<std::size_t>(bits_);
  held_ = std::min(BitWriter::kChunk, from_.size() * 8 / bits);
  PIPEWRIGHT_CHECK(held_ > 0, "more values are read than there are");
  const auto bytes =
      static_cast<std::size_t>(packed_bytes(static_cast<std::int64_t>(held_), bits_));
  unpack(from_.first(bytes), bits_, {codes_, held_});
  from_ = from_.subspan(bytes);
  at_ = 0;
}

}  // namespace pipewright
