// SPDX-License-Identifier: Apache-2.0
// A folder is ours or it is not touched, and one process at a time works in it.
#include "core/system/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "core/base/error.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

class Folders : public testing::Test {
 protected:
  Folders() {
    std::string name = (fs::temp_directory_path() / "pipewright-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = root_ / "folder";
    marker_ = folder_ / kFolderMarker;
  }
  ~Folders() override { fs::remove_all(root_); }

  /// What the refusal says after the folder; the kind is checked.
  std::string refusal(FolderTerms terms = {}) const {
    try {
      const FolderLock lock(folder_, terms);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Experiment);
      EXPECT_EQ(error.where(), folder_.string());
      return error.message();
    }
    return "taken";
  }

  fs::path root_, folder_, marker_;
};

TEST_F(Folders, AreMadeAndMarked) {
  const FolderLock lock(folder_ / "a" / "b");
  EXPECT_EQ(read_file(folder_ / "a" / "b" / kFolderMarker).size(), 512U);
  fs::create_directory(folder_ / "empty");
  EXPECT_NO_THROW(FolderLock(folder_ / "empty"));
}

TEST_F(Folders, InWhichNothingWasWrittenAreAsBefore) {
  { const FolderLock lock(folder_); }
  EXPECT_FALSE(fs::exists(folder_));
  fs::create_directory(folder_);
  { const FolderLock lock(folder_); }
  EXPECT_TRUE(fs::is_empty(folder_));
  {
    const FolderLock lock(folder_);
    write_file(folder_ / "run.json", "{}");
  }
  EXPECT_TRUE(fs::exists(marker_));
  fs::remove(folder_ / "run.json");
  { const FolderLock lock(folder_); }  // the marker was there before
  EXPECT_TRUE(fs::exists(marker_));
}

TEST_F(Folders, AreFreeWhereCertainlyNobodyWorks) {
  EXPECT_TRUE(is_free(folder_)) << "there is none";
  {
    const FolderLock lock(folder_);
    EXPECT_FALSE(is_free(folder_));
    EXPECT_TRUE(is_held(folder_));
    write_file(folder_ / "run.json", "{}");
  }
  EXPECT_TRUE(is_free(folder_));
  fs::remove(marker_);
  fs::create_symlink("elsewhere", marker_);
  EXPECT_FALSE(is_free(folder_) || is_held(folder_))
      << "a marker that cannot be opened says nothing";
}

TEST_F(Folders, OfSomebodyElseAreRefused) {
  write_file(folder_ / "b.txt", "mine");
  write_file(folder_ / "a.txt", "mine");
  EXPECT_EQ(refusal(),
            "the folder has 'a.txt' in it and no .pipewright, so it is not Pipewright's, which "
            "writes nothing there; give another --out, one that is empty or does not exist");
  EXPECT_FALSE(fs::exists(marker_));
  EXPECT_EQ(refusal({.adopt = true}), "taken");
  EXPECT_EQ(refusal(), "taken") << "it is marked now";
}

TEST_F(Folders, AreNotOursByAFileOfThatNameAlone) {
  const std::string other = "the folder has a .pipewright of somebody else";
  write_file(marker_, "theme: dark");
  EXPECT_EQ(refusal().find(other), 0u);
  EXPECT_EQ(read_file(marker_), "theme: dark");
  fs::remove(marker_);
  ASSERT_EQ(::mkfifo(marker_.c_str(), 0600), 0);
  EXPECT_EQ(refusal().find(other), 0u);
  fs::remove(marker_);
  fs::create_directory(marker_);
  EXPECT_EQ(refusal().find(other), 0u);
  fs::remove(marker_);
  { const FolderLock lock(root_ / "ours"); }
  fs::create_symlink(root_ / "ours" / kFolderMarker, marker_);
  EXPECT_EQ(refusal().find(other), 0u);
}

TEST_F(Folders, AreOursWhereMakingTheMarkerWasCutShort) {
  std::string whole;
  {
    const FolderLock lock(folder_);
    whole = read_file(marker_);
  }
  for (const std::size_t length : {0UL, 1UL, 60UL, 256UL, 511UL}) {
    write_file(marker_, whole.substr(0, length));
    EXPECT_EQ(refusal(), "taken") << length;
    EXPECT_EQ(read_file(marker_).size(), 512U);
  }
  write_file(marker_, whole.substr(0, 20));
  write_file(folder_ / "mine", "");
  EXPECT_NE(refusal(), "taken") << "this could be anybody's";
}

TEST_F(Folders, AreTakenOnceAndTheSecondComerIsToldByWhom) {
  auto lock = std::make_unique<FolderLock>(folder_);
  EXPECT_TRUE(is_held(folder_));
  const std::string text = refusal();
  const std::string begin =
      concat("the folder is being worked in by pid ", ::getpid(), " on host ");
  EXPECT_EQ(text.find(begin), 0u) << text;
  EXPECT_NE(text.find("Z; wait until it has ended, or give another --out"), std::string::npos);
  lock.reset();
  EXPECT_FALSE(is_held(folder_));
  EXPECT_EQ(refusal(), "taken");
}

TEST_F(Folders, StayTakenByChildrenThatInheritTheLock) {
  int both[2];
  ASSERT_EQ(::pipe(both), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const FolderLock lock(folder_, {.inherited = true});
    const pid_t child = ::fork();
    if (child == 0) ::execl("/bin/sleep", "sleep", "600", nullptr);
    static_cast<void>(::write(both[1], &child, sizeof child));
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(both[0], &child, sizeof child), ssize_t{sizeof child});
  ::waitpid(parent, nullptr, 0);
  EXPECT_EQ(refusal().find(concat("the folder is being worked in by a process that was started by "
                                  "pid ",
                                  parent, " on host ")),
            0u);
  ::kill(child, SIGKILL);
  const Descriptor marker(marker_, O_RDWR);
  ::flock(marker.number(), LOCK_EX);  // waits for its end
  ::flock(marker.number(), LOCK_UN);
  EXPECT_EQ(refusal(), "taken");
  ::close(both[0]);
  ::close(both[1]);
}

TEST_F(Folders, ThatCannotBeMadeSayWhy) {
  write_file(root_ / "file", "");
  for (const auto& [path, why] :
       {std::pair(root_ / "file" / "x", "cannot make the folder: Not a directory"),
        std::pair(root_ / "file", "cannot make the folder: there is a file of this name"),
        std::pair(root_ / std::string(300, 'x'), "cannot make the folder: File name too long")}) {
    try {
      const FolderLock lock(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_EQ(error.what(), concat(path.string(), ": ", std::string_view(why)));
    }
  }
}

}  // namespace
}  // namespace pipewright
