#include "core/base/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace pipewright {
namespace {

constexpr std::size_t kBlock = 64;  // bytes

using State = std::array<std::uint32_t, 4>;
using Words = std::array<std::uint32_t, 16>;

/// By how much each step of a round rotates; a round has 16 steps.
constexpr std::array<std::array<int, 4>, 4> kRotations{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

/// The RFC's table T: the integer part of 2^32 |sin(i)|, i from 1 to 64.
const std::array<std::uint32_t, 64>& sines() {
  static const auto table = [] {
    std::array<std::uint32_t, 64> values{};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint32_t>(
          std::floor(std::ldexp(std::abs(std::sin(static_cast<double>(i + 1))), 32)));
    return values;
  }();
  return table;
}

Words words_of_block(std::string_view block) {
  Words words{};
  for (std::size_t i = 0; i < kBlock; ++i)  // the first byte of a word is its lowest
    words[i / 4] |= std::uint32_t{static_cast<unsigned char>(block[i])} << 8 * (i % 4);
  return words;
}

/// 16 steps, each with its function of three words and its order of the block's words.
template <int kRound, class Mix>
void add_round(State& state, const Words& words, std::size_t first, std::size_t stride,
               const std::array<std::uint32_t, 64>& table, const Mix& mix) {
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t sum =
        a + mix(b, c, d) + words[(first + i * stride) % 16] + table[16 * kRound + i];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kRotations[kRound][i % 4]);
  }
  state = {a, b, c, d};
}

void add_block(State& state, std::string_view block) {
  using Word = std::uint32_t;
  const Words words = words_of_block(block);
  const auto& table = sines();
  State mixed = state;
  add_round<0>(mixed, words, 0, 1, table,
               [](Word x, Word y, Word z) { return (x & y) | (~x & z); });
  add_round<1>(mixed, words, 1, 5, table,
               [](Word x, Word y, Word z) { return (x & z) | (y & ~z); });
  add_round<2>(mixed, words, 5, 3, table, [](Word x, Word y, Word z) { return x ^ y ^ z; });
  add_round<3>(mixed, words, 0, 7, table, [](Word x, Word y, Word z) { return y ^ (x | ~z); });
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += mixed[i];
}

/// What is left of the message, a one, zeros, and the message's length in bits, lowest byte first.
std::string padded(std::string_view rest, std::uint64_t length_in_bytes) {
  std::string end(rest);
  end += '\x80';
  while (end.size() % kBlock != kBlock - 8) end += '\0';
  for (int shift = 0; shift < 64; shift += 8)
    end += static_cast<char>(length_in_bytes * 8 >> shift & 0xff);
  return end;
}

}  // namespace

std::string md5(std::string_view bytes) {
  State state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::size_t whole = bytes.size() / kBlock * kBlock;
  for (std::size_t at = 0; at < whole; at += kBlock) add_block(state, bytes.substr(at, kBlock));
  const std::string end = padded(bytes.substr(whole), bytes.size());
  for (std::size_t at = 0; at < end.size(); at += kBlock)
    add_block(state, std::string_view(end).substr(at, kBlock));
  std::string text;
  for (const std::uint32_t word : state)
    for (int byte = 0; byte < 4; ++byte)
      for (const int shift : {4, 0}) text += "0123456789abcdef"[word >> (8 * byte + shift) & 0xf];
  return text;
}

}  // namespace pipewright
