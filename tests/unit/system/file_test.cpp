// SPDX-License-Identifier: Apache-2.0
// Files as whole values: a final name holds the old content or the new, whatever happens between.
#include "core/system/file.h"
#include "tests/unit/system/environment.h"

#include <gtest/gtest.h>

#include <linux/capability.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <optional>

#include <array>
#include <csignal>
#include <cstdlib>

#include "core/base/error.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// A fresh folder that goes away with the test.
class Files : public testing::Test {
 protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "pipewright-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() override { fs::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

template <class Call>
std::string data_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Data ? error.what() : "another kind";
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A disk that is full after so many bytes: beyond them, a write fails (or kills, by default).
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Files, AreReadBackByteByByte) {
  std::string content = "text\r\n";
  for (int byte = 0; byte < 256; ++byte) content += static_cast<char>(byte);
  write_file(folder_ / "bytes", content);
  EXPECT_EQ(read_file(folder_ / "bytes"), content);
  write_file(folder_ / "empty", "");
  EXPECT_EQ(read_file(folder_ / "empty"), "");
}

TEST_F(Files, AreNeverWrittenThroughALinkNorInPlaceOfADevice) {
  write_file(folder_ / "mine", "mine");
  fs::create_symlink(folder_ / "mine", folder_ / "link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const auto& [name, kind] :
       {std::pair("link", "a symbolic link"), std::pair("pipe", "a pipe")})
    EXPECT_EQ(data_error([&] { write_file(folder_ / name, "new"); }),
              concat((folder_ / name).string(), ": is ", std::string_view(kind),
                     "; only a regular file is replaced; remove it or give another name"));
  EXPECT_EQ(read_file(folder_ / "mine"), "mine");
  EXPECT_EQ(entries(), 3U);
}

TEST_F(Files, LeaveAloneWhatHasTheNameOfTheirTemporaryFile) {
  const fs::path part = folder_ / concat("x.", ::getpid(), ".part");
  write_file(folder_ / "mine", "mine");
  fs::create_symlink(folder_ / "mine", part);
  write_file(folder_ / concat("x.", ::getpid(), "-1.part"), "mine");
  write_file(folder_ / "x", "new");
  EXPECT_EQ(read_file(folder_ / "x"), "new");
  EXPECT_EQ(read_file(folder_ / "mine"), "mine");
  EXPECT_TRUE(fs::is_symlink(part));
  EXPECT_EQ(entries(), 4U);
}

TEST_F(Files, LinksToFoldersThatAreNotThereAreFollowed) {
  fs::create_symlink("target/below", folder_ / "link");
  write_file(folder_ / "link" / "x", "new");
  EXPECT_EQ(read_file(folder_ / "target" / "below" / "x"), "new");
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  EXPECT_TRUE(contains(data_error([&] { make_folders(folder_ / "a"); }), "cannot make the folder"));
}

TEST_F(Files, AreWrittenFromPieces) {
  const std::array<std::string_view, 3> pieces{"one ", "", "two"};
  write_file(folder_ / "pieces", pieces);
  EXPECT_EQ(read_file(folder_ / "pieces"), "one two");
}

TEST_F(Files, AreWrittenFromShortAndLongPiecesInOrder) {
  const std::string long_one(100'000, 'l'), longer(60'000, 'm');
  const std::array<std::string_view, 6> pieces{"a", long_one, "b", longer, longer, "c"};
  write_file(folder_ / "pieces", pieces);
  EXPECT_EQ(read_file(folder_ / "pieces"), "a" + long_one + "b" + longer + longer + "c");
}

TEST_F(Files, MissingFoldersAreMade) {
  write_file(folder_ / "a" / "b" / "c.txt", "deep");
  EXPECT_EQ(read_file(folder_ / "a" / "b" / "c.txt"), "deep");
}

TEST_F(Files, NothingButTheFileIsLeft) {
  write_file(folder_ / "f", "first, and longer");
  write_file(folder_ / "f", "second");
  EXPECT_EQ(read_file(folder_ / "f"), "second");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AFullDiskLeavesTheOldFileAndNoPart) {
  write_file(folder_ / "f", "old");
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  const std::string error = [&] {
    const FileSizeLimit limit(1000);
    return data_error([&] { write_file(folder_ / "f", std::string(100'000, 'n')); });
  }();
  std::signal(SIGXFSZ, before);
  EXPECT_TRUE(contains(error, "cannot write")) << error;
  EXPECT_TRUE(contains(error, (folder_ / "f").string())) << error;
  EXPECT_EQ(read_file(folder_ / "f"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AKillInTheMiddleLeavesTheOldFile) {
  write_file(folder_ / "f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);  // which kills, in the middle of write()
    const FileSizeLimit limit(1000);
    write_file(folder_ / "f", std::string(100'000, 'n'));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder_ / "f"), "old");
}

TEST_F(Files, CannotReplaceAFolder) {
  fs::create_directory(folder_ / "taken");
  const std::string error = data_error([&] { write_file(folder_ / "taken", "content"); });
  EXPECT_TRUE(contains(error, (folder_ / "taken").string())) << error;
  EXPECT_TRUE(fs::is_directory(folder_ / "taken"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, CannotBeWrittenBelowAFile) {
  write_file(folder_ / "f", "file");
  EXPECT_TRUE(contains(data_error([&] { write_file(folder_ / "f" / "g", "x"); }),
                       "there is a file of this name"));
}

/// Takes from this thread what lets root write anywhere (CAP_DAC_OVERRIDE), until the end of its
/// life.
class NoOverride {
 public:
  NoOverride() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, before_.data()), 0);
    Sets less = before_;
    less[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
    EXPECT_EQ(::syscall(SYS_capset, &header_, less.data()), 0);
  }
  ~NoOverride() { EXPECT_EQ(::syscall(SYS_capset, &header_, before_.data()), 0); }
  NoOverride(const NoOverride&) = delete;
  NoOverride& operator=(const NoOverride&) = delete;

 private:
  using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets before_{};
};

TEST_F(Files, CannotBeWrittenIntoAReadOnlyFolder) {
  write_file(folder_ / "f", "old");
  const NoOverride like_a_user;
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const std::string error = data_error([&] { write_file(folder_ / "f", "new"); });
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_TRUE(contains(error, "cannot create")) << error;
  EXPECT_EQ(read_file(folder_ / "f"), "old");
}

TEST_F(Files, ThatCannotBeReadAreNamed) {
  const std::string missing = data_error([&] { read_file(folder_ / "missing"); });
  EXPECT_TRUE(contains(missing, (folder_ / "missing").string())) << missing;
  const std::string directory = data_error([&] { read_file(folder_); });
  EXPECT_TRUE(contains(directory, folder_.string())) << directory;
}

TEST_F(Files, LargerThanTheLimitAreRefused) {
  write_file(folder_ / "f", "12345");
  EXPECT_EQ(read_file(folder_ / "f", 5), "12345");
  const std::string error = data_error([&] { read_file(folder_ / "f", 4); });
  EXPECT_TRUE(contains(error, "5 bytes, at most 4")) << error;
}

TEST(ResolvedPath, IsRelativeToTheBase) {
  EXPECT_EQ(resolved_path("x/y", "/base"), "/base/x/y");
  EXPECT_EQ(resolved_path("../y", "/base/z"), "/base/y");
  EXPECT_EQ(resolved_path("/abs/./y", "/base"), "/abs/y");
  EXPECT_EQ(resolved_path("y", "base"), fs::current_path() / "base" / "y");
}

TEST(ResolvedPath, ATildeIsTheHomeFolder) {
  ::unsetenv("PIPEWRIGHT_DATA");
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(resolved_path("~/data", "/base"), "/home/someone/data");
  EXPECT_EQ(resolved_path("~", "/base") / "x", "/home/someone/x");
  EXPECT_EQ(resolved_path("~other/x", "/base"), "/base/~other/x");
  home == nullptr ? ::unsetenv("HOME") : ::setenv("HOME", before.c_str(), 1);
}

// A folder of the name "~" in the working folder would be somebody's surprise.
TEST(ResolvedPath, WithoutHomeTheSystemSaysTheHomeFolder) {
  const passwd* const user = ::getpwuid(::getuid());
  ASSERT_TRUE(user != nullptr && user->pw_dir[0] == '/') << "this user has no home folder";
  const fs::path home = user->pw_dir;
  const test::EnvironmentSetting data("PIPEWRIGHT_DATA", "");
  const test::EnvironmentSetting empty("HOME", "");
  EXPECT_EQ(resolved_path("~/data/mnist", "/base"), home / "data/mnist");
  ::unsetenv("HOME");
  EXPECT_EQ(resolved_path("~/x", "/base"), home / "x");
  const test::EnvironmentSetting sets("PIPEWRIGHT_DATA", "~/sets");
  EXPECT_EQ(resolved_path("~/data/mnist", "/base"), home / "sets/mnist");
}

TEST(ResolvedPath, TheFolderOfDataIsWhereTheVariableSays) {
  const test::EnvironmentSetting home("HOME", "/home/someone");
  const test::EnvironmentSetting data("PIPEWRIGHT_DATA", "/big/disk/");
  EXPECT_EQ(resolved_path("~/data", "/base"), "/big/disk/");
  EXPECT_EQ(resolved_path("~/data/mnist", "/base"), "/big/disk/mnist");
  EXPECT_EQ(resolved_path("~/database/x", "/base"), "/home/someone/database/x");
  EXPECT_EQ(resolved_path("/home/someone/data/x", "/base"), "/home/someone/data/x");
}

TEST(ResolvedPath, TheVariableMayNameAFolderOfTheHomeOrOfTheCurrentFolder) {
  const test::EnvironmentSetting home("HOME", "/home/someone");
  {
    const test::EnvironmentSetting data("PIPEWRIGHT_DATA", "~/sets");
    EXPECT_EQ(resolved_path("~/data/mnist", "/base"), "/home/someone/sets/mnist");
  }
  {
    const test::EnvironmentSetting data("PIPEWRIGHT_DATA", "sets");
    EXPECT_EQ(resolved_path("~/data/mnist", "/base"), fs::current_path() / "sets/mnist");
  }
  const test::EnvironmentSetting data("PIPEWRIGHT_DATA", "");
  EXPECT_EQ(resolved_path("~/data/mnist", "/base"), "/home/someone/data/mnist");
}

}  // namespace
}  // namespace pipewright
