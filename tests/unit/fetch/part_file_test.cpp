// SPDX-License-Identifier: Apache-2.0
#include "core/fetch/part_file.h"

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

using fixtures::contains;
using fixtures::error_of;
using fixtures::put;

const std::string kLikeMd5(32, '0'), kLikeSha256(64, '0');

// The digests are md5sum's and sha256sum's.
TEST(ChecksumOf, AFileOfManyPieces) {
  const fixtures::TemporaryFolder folder;
  put(folder / "x", std::string((3 << 20) + 7, 'a'));
  EXPECT_EQ(checksum_of(folder / "x", kLikeMd5), "0f1e73b266306a333f55a71e1fbf5c47");
  EXPECT_EQ(checksum_of(folder / "x", kLikeSha256),
            "7d8aedf62548b6943c912ca5192d7a2c13322cd689d7a47d4b3944b4bb2e30c6");
  put(folder / "x", std::string(1 << 20, 'a'));
  EXPECT_EQ(checksum_of(folder / "x", kLikeMd5), "7202826a7791073fe2787f0c94603278");
}

TEST(ChecksumOf, AnEmptyFileAndOfNone) {
  const fixtures::TemporaryFolder folder;
  put(folder / "x", "");
  EXPECT_EQ(checksum_of(folder / "x", kLikeMd5), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_TRUE(contains(error_of([&] { checksum_of(folder / "none", kLikeMd5); }), "none"));
}

}  // namespace
}  // namespace pipewright
