// SPDX-License-Identifier: Apache-2.0
#include "core/system/file_checksum.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

using enum Checksum::Kind;

class FileChecksum : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  std::string of(const std::string& content, Checksum::Kind kind) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << content;
    return file_checksum(file_, kind);
  }

  std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / concat("checksum-", ::getpid());
};

// The digests are md5sum's and sha256sum's.
TEST_F(FileChecksum, IsThatOfAFileOfManyPieces) {
  const std::string long_text((3 << 20) + 7, 'a');
  EXPECT_EQ(of(long_text, Md5), "0f1e73b266306a333f55a71e1fbf5c47");
  EXPECT_EQ(of(long_text, Sha256),
            "7d8aedf62548b6943c912ca5192d7a2c13322cd689d7a47d4b3944b4bb2e30c6");
  EXPECT_EQ(of(std::string(1 << 20, 'a'), Md5), "7202826a7791073fe2787f0c94603278");
}

TEST_F(FileChecksum, IsThatOfAnEmptyFileAndNoneOfNoFile) {
  EXPECT_EQ(of("", Md5), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_THROW(file_checksum(file_.string() + "-none", Md5), Error);
}

}  // namespace
}  // namespace pipewright
