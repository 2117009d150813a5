// SPDX-License-Identifier: Apache-2.0
#include "core/system/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

class InputFiles : public testing::Test {
 protected:
  InputFiles() : folder_(fs::path(testing::TempDir()) / concat("pipewright_input_", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~InputFiles() override { fs::remove_all(folder_); }

  std::string refusal(const fs::path& path) {
    try {
      InputFile file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_EQ(error.where(), path.string());
      return error.message();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(InputFiles, GiveTheirBytesInOrderAndFromAnyPlace) {
  write_file(folder_ / "a", "0123456789");
  InputFile file(folder_ / "a");
  EXPECT_EQ(file.size(), 10u);
  char bytes[20] = {};
  EXPECT_EQ(file.read(bytes, 4), 4u);
  EXPECT_EQ(std::string(bytes, 4), "0123");
  EXPECT_EQ(file.read_at(7, bytes, 20), 3u);
  EXPECT_EQ(std::string(bytes, 3), "789");
  EXPECT_EQ(file.read(bytes, 1), 0u);
}

// The test's own timeout notices if opening a FIFO waits for somebody to write into it.
TEST_F(InputFiles, AreNoFifosDevicesOrFolders) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", folder_ / "link");
  EXPECT_EQ(refusal(folder_ / "fifo"), "cannot read: it is a FIFO or pipe; expected a plain file");
  EXPECT_EQ(refusal(folder_ / "link"), "cannot read: it is a FIFO or pipe; expected a plain file");
  EXPECT_EQ(refusal("/dev/zero"), "cannot read: it is a device; expected a plain file");
  EXPECT_EQ(refusal(folder_), "cannot read: Is a directory");
  EXPECT_EQ(refusal(folder_ / "none"), "cannot open: No such file or directory");
}

}  // namespace
}  // namespace pipewright
