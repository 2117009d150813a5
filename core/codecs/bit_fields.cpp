#include "core/codecs/bit_fields.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little);

using Word = std::uint64_t;

constexpr Word low(int bits) {
  return bits == 64 ? ~Word{0} : (Word{1} << bits) - 1;
}

/// Lanes of 2^k bits in a word, each with `bits` bits: neighbours move together, or apart again.
template <int kLane>
constexpr Word kEveryOther = ~Word{0} / ((Word{1} << kLane) + 1);

template <int kLane>
[[gnu::always_inline]] inline Word join_lanes(Word x, int bits) {
  if constexpr (kLane == 32)
    return (x & low(32)) | ((x >> 32) << bits);
  else
    return (x & kEveryOther<kLane>) | ((x & ~kEveryOther<kLane>) >> (kLane - bits));
}

template <int kLane>
[[gnu::always_inline]] inline Word part_lanes(Word x, int bits) {
  if constexpr (kLane == 32) return (x & low(bits)) | ((x >> bits) << 32);
  const Word least = low(bits) * (kLane == 8 ? 0x0001000100010001u : 0x0000000100000001u);
  return (x & least) | ((x & (least << bits)) << (kLane - bits));
}

/// Eight codes to the 8·bits lowest bits of two words, and back.
struct Octet {
  Word low, high;
};

[[gnu::always_inline]] inline Octet join(const std::uint8_t* codes, int bits) {
  Word x;
  std::memcpy(&x, codes, 8);
  x = join_lanes<8>(x, bits);
  x = join_lanes<16>(x, 2 * bits);
  return {join_lanes<32>(x, 4 * bits), 0};
}

[[gnu::always_inline]] inline Octet join(const std::uint16_t* codes, int bits) {
  std::array<Word, 2> x;
  std::memcpy(x.data(), codes, 16);
  for (Word& quad : x) quad = join_lanes<32>(join_lanes<16>(quad, bits), 2 * bits);
  return {x[0] | (x[1] << (4 * bits)), x[1] >> (64 - 4 * bits)};
}

[[gnu::always_inline]] inline void part(Octet octet, int bits, std::uint8_t* codes) {
  Word x = octet.low & low(8 * bits);
  x = part_lanes<32>(x, 4 * bits);
  x = part_lanes<16>(x, 2 * bits);
  x = part_lanes<8>(x, bits);
  std::memcpy(codes, &x, 8);
}

[[gnu::always_inline]] inline void part(Octet octet, int bits, std::uint16_t* codes) {
  std::array<Word, 2> x{
      octet.low & low(4 * bits),
      ((octet.low >> (4 * bits)) | (octet.high << (64 - 4 * bits))) & low(4 * bits)};
  for (Word& quad : x) quad = part_lanes<16>(part_lanes<32>(quad, 2 * bits), bits);
  std::memcpy(codes, x.data(), 16);
}

/// Octets are written and read whole, beyond their own bytes, where there is room for that: what is
/// beyond comes after and is overwritten, or not looked at.
template <class Code>
void pack(std::span<const Code> codes, int bits, std::span<std::byte> into) {
  constexpr std::size_t kWhole = 8 * sizeof(Code);
  if (bits == 8 * static_cast<int>(sizeof(Code))) {
    if (!codes.empty()) std::memcpy(into.data(), codes.data(), codes.size_bytes());
    return;
  }
  const auto step = static_cast<std::size_t>(bits);
  std::size_t i = 0, at = 0;
  for (; i + 8 <= codes.size() && at + kWhole <= into.size(); i += 8, at += step) {
    const Octet octet = join(codes.data() + i, bits);
    std::memcpy(into.data() + at, &octet, kWhole);
  }
  for (; i < codes.size(); i += 8, at += step) {
    std::array<Code, 8> last{};
    std::copy_n(codes.data() + i, std::min<std::size_t>(8, codes.size() - i), last.data());
    const Octet octet = join(last.data(), bits);
    std::memcpy(into.data() + at, &octet, std::min(step, into.size() - at));
  }
}

template <class Code>
void unpack(std::span<const std::byte> packed, int bits, std::span<Code> codes) {
  constexpr std::size_t kWhole = 8 * sizeof(Code);
  if (bits == 8 * static_cast<int>(sizeof(Code))) {
    if (!codes.empty()) std::memcpy(codes.data(), packed.data(), codes.size_bytes());
    return;
  }
  const auto step = static_cast<std::size_t>(bits);
  std::size_t i = 0, at = 0;
  for (; i + 8 <= codes.size() && at + kWhole <= packed.size(); i += 8, at += step) {
    Octet octet{0, 0};
    std::memcpy(&octet, packed.data() + at, kWhole);
    part(octet, bits, codes.data() + i);
  }
  for (; i < codes.size(); i += 8, at += step) {
    Octet octet{0, 0};
    std::memcpy(&octet, packed.data() + at, std::min(step, packed.size() - at));
    std::array<Code, 8> last;
    part(octet, bits, last.data());
    std::copy_n(last.data(), std::min<std::size_t>(8, codes.size() - i), codes.data() + i);
  }
}

}  // namespace

void pack_bits(std::span<const std::uint8_t> codes, int bits, std::span<std::byte> into) {
  pack(codes, bits, into);
}
void pack_bits(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into) {
  pack(codes, bits, into);
}
void unpack_bits(std::span<const std::byte> packed, int bits, std::span<std::uint8_t> codes) {
  unpack(packed, bits, codes);
}
void unpack_bits(std::span<const std::byte> packed, int bits, std::span<std::uint16_t> codes) {
  unpack(packed, bits, codes);
}

}  // namespace pipewright
