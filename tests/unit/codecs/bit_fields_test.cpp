#include "core/codecs/bit_fields.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace pipewright::testing {
namespace {

template <class Code>
std::vector<Code> random_codes(std::size_t n, int bits) {
  std::mt19937 random(static_cast<unsigned>(bits));
  std::vector<Code> codes(n);
  for (Code& code : codes) code = static_cast<Code>(random() & ((1u << bits) - 1));
  return codes;
}

/// Bit k of code i, from the definition.
template <class Code>
void expect_fields(const std::vector<Code>& codes, int bits) {
  std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes(std::ssize(codes), bits)));
  ASSERT_EQ(packed.size(), (codes.size() * static_cast<std::size_t>(bits) + 7) / 8);
  pack_bits(std::span<const Code>(codes), bits, packed);
  for (std::size_t i = 0; i < packed.size() * 8; ++i) {
    const std::size_t code = i / static_cast<std::size_t>(bits);
    const unsigned expected =
        code < codes.size() ? (unsigned{codes[code]} >> (i % static_cast<std::size_t>(bits))) & 1
                            : 0;
    ASSERT_EQ((std::to_integer<unsigned>(packed[i / 8]) >> (i % 8)) & 1, expected)
        << bits << " bits, " << codes.size() << " codes, bit " << i;
  }
  std::vector<Code> unpacked(codes.size());
  unpack_bits(packed, bits, std::span(unpacked));
  EXPECT_EQ(unpacked, codes) << bits;
}

TEST(BitFields, AreSideBySideLeastBitsFirst) {
  for (const std::size_t n : {0, 1, 5, 7, 8, 9, 15, 16, 63, 64, 65, 1000}) {
    for (int bits = 1; bits <= 8; ++bits) expect_fields(random_codes<std::uint8_t>(n, bits), bits);
    for (int bits = 1; bits <= 16; ++bits)
      expect_fields(random_codes<std::uint16_t>(n, bits), bits);
  }
}

}  // namespace
}  // namespace pipewright::testing
