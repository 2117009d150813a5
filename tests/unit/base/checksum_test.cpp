// SPDX-License-Identifier: Apache-2.0
// The examples of RFC 1321 and FIPS 180-4, lengths around the end of a block, bytes in pieces.
#include "core/base/checksum.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

TEST(Md5, IsThatOfTheRfc) {
  EXPECT_EQ(md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(md5("1234567890123456789012345678901234567890"
                "1234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, APaddingThatNeedsABlockOfItsOwn) {
  EXPECT_EQ(md5(std::string(55, '\xff')), "fd696aa639acaba9ce0e0964028fbe81");
  EXPECT_EQ(md5(std::string(56, '\xff')), "74444b7e7b01632f3277365c8ca35ec2");
  EXPECT_EQ(md5(std::string(63, '\xff')), "2e8381ef75aa4df05c31143466ecc2a8");
  EXPECT_EQ(md5(std::string(64, '\xff')), "aabd2b2a451504e119a243d8e775fdad");
  EXPECT_EQ(md5(std::string(1'000'000, 'a')), "7707d6ae4e027c70eea2a935c2296f21");
}

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, APaddingThatNeedsABlockOfItsOwn) {
  EXPECT_EQ(sha256(std::string(55, '\xff')),
            "aadaed00a3c5fbb8072ae7f1984ba8199fbe5272de427d11eaf31583af37db51");
  EXPECT_EQ(sha256(std::string(56, '\xff')),
            "528ff50ab05e77bbbd224a9ec86165dbb6824a9a9efb544be0a1d57d5b416457");
  EXPECT_EQ(sha256(std::string(63, '\xff')),
            "d12449c8124182545ae91924286cc6af13528bcf62a5ddbd5e00b891fffc1b48");
  EXPECT_EQ(sha256(std::string(64, '\xff')),
            "8667e718294e9e0df1d30600ba3eeb201f764aad2dad72748643e4a285e1d1f7");
}

TEST(Checksum, OfPiecesIsThatOfTheWhole) {
  const std::string bytes(1'000'000, 'a');
  for (const std::size_t piece : {1u, 63u, 64u, 65u, 4096u, 999'999u}) {
    Checksum checksum(Checksum::Kind::Sha256);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      checksum.add(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(checksum.digits(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        << piece;
  }
}

}  // namespace
}  // namespace pipewright
