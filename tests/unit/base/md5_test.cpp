// The test suite of RFC 1321, and lengths around the end of a block.
#include "core/base/md5.h"

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

}  // namespace
}  // namespace pipewright
