// SPDX-License-Identifier: Apache-2.0
// Packed fields, against one bit after another.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/tensors/torch.h"

namespace pipewright::testing {
namespace {

using Codes = std::vector<std::uint16_t>;
using Bytes = std::vector<std::byte>;

template <class Code = std::uint16_t>
std::vector<Code> random_codes(std::size_t n, int bits) {
  std::mt19937 random(static_cast<unsigned>(n) * 17 + static_cast<unsigned>(bits));
  std::vector<Code> codes(n);
  for (auto& code : codes) code = static_cast<Code>(random() & ((1U << bits) - 1));
  return codes;
}

template <class Code>
Bytes bit_by_bit(const std::vector<Code>& codes, int bits) {
  Bytes bytes((codes.size() * static_cast<std::size_t>(bits) + 7) / 8);
  for (std::size_t i = 0, at = 0; i < codes.size(); ++i)
    for (int bit = 0; bit < bits; ++bit, ++at)
      bytes[at / 8] |= static_cast<std::byte>((codes[i] >> bit & 1) << (at % 8));
  return bytes;
}

const std::vector<std::size_t> kLengths{0, 1, 2, 7, 8, 9, 15, 63, 64, 1001, 2048, 2049, 5003};

template <class Code>
void expect_one_after_another(std::size_t n, int bits) {
  const std::vector<Code> codes = random_codes<Code>(n, bits);
  const Bytes expected = bit_by_bit(codes, bits);
  ASSERT_EQ(packed_bytes(static_cast<std::int64_t>(n), bits),
            static_cast<std::int64_t>(expected.size()));
  Bytes bytes(expected.size(), std::byte{0xff});
  pack(codes, bits, bytes);
  ASSERT_EQ(bytes, expected) << n << " of " << bits;
  std::vector<Code> back(n, static_cast<Code>(~0));
  unpack(bytes, bits, back);
  ASSERT_EQ(back, codes) << n << " of " << bits;
}

TEST(Bits, LieOneAfterAnotherFromTheLowest) {
  for (const std::size_t n : kLengths) {
    for (int bits = 1; bits <= 8; ++bits) expect_one_after_another<std::uint8_t>(n, bits);
    for (int bits = 1; bits <= kMostBits; ++bits) expect_one_after_another<std::uint16_t>(n, bits);
  }
}

TEST(Bits, AreTheSameWrittenAndReadInPieces) {
  for (const int bits : {1, 5, 8, 11}) {
    const Codes codes = random_codes(9001, bits);
    Bytes bytes(bit_by_bit(codes, bits).size());
    BitWriter writer(bytes, bits);
    std::size_t done = 0;
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2047}, std::size_t{5000},
                                    std::size_t{0}, std::size_t{1953}}) {
      writer.write(piece, [&](std::size_t first, std::span<std::uint16_t> into) {
        std::copy_n(codes.begin() + static_cast<std::ptrdiff_t>(done + first), into.size(),
                    into.begin());
      });
      done += piece;
    }
    writer.flush();
    ASSERT_EQ(bytes, bit_by_bit(codes, bits));
    Codes back;
    BitReader reader(bytes, bits);
    for (const std::size_t piece : {std::size_t{3}, std::size_t{8000}, std::size_t{998}})
      reader.read(piece, [&](std::size_t, std::span<const std::uint16_t> read) {
        back.insert(back.end(), read.begin(), read.end());
      });
    EXPECT_EQ(back, codes);
  }
}

TEST(Bits, AreTheSameWithLibTorchsOperations) {
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::size_t n : kLengths) {
      const Codes codes = random_codes(n, bits);
      const at::Tensor tensor = at::tensor(std::vector<int>(codes.begin(), codes.end()), at::kInt);
      const at::Tensor bytes = packed(tensor, bits);
      const Bytes expected = bit_by_bit(codes, bits);
      ASSERT_EQ(bytes.numel(), static_cast<std::int64_t>(expected.size()));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(static_cast<std::byte>(bytes.const_data_ptr<std::uint8_t>()[i]), expected[i]);
      EXPECT_TRUE(unpacked(bytes, static_cast<std::int64_t>(n), bits).equal(tensor));
    }
}

}  // namespace
}  // namespace pipewright::testing
