// SPDX-License-Identifier: Apache-2.0
// Files that a command was given are known by their numbers, as long as they are there.
#include "core/system/given_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

fs::path new_folder() {
  std::string name = (fs::temp_directory_path() / "pipewright-XXXXXX").string();
  return ::mkdtemp(name.data());
}

TEST(GivenFiles, AreKnownUnderEveryNameUntilTheyAreGone) {
  const fs::path folder = new_folder();
  const fs::path given = folder / "given.yaml", link = folder / "link.yaml";
  std::ofstream(given) << "x";
  EXPECT_FALSE(is_given_file(given));
  remember_given_file(given);
  fs::create_hard_link(given, link);
  EXPECT_TRUE(is_given_file(given));
  EXPECT_TRUE(is_given_file(link));
  EXPECT_THROW(refuse_given_file(link), Error);
  // What then has its number is another file: file systems use numbers again.
  fs::remove(given);
  EXPECT_FALSE(is_given_file(link));
  EXPECT_NO_THROW(refuse_given_file(link));
  fs::remove_all(folder);
}

TEST(GivenFiles, ThatAreNamedAreNotReplacedWithoutBeingRead) {
  const fs::path folder = new_folder();
  std::ofstream(folder / "corpus.txt") << "x";
  remember_named_path(folder / "corpus.txt");
  EXPECT_THROW(refuse_given_file(folder / "corpus.txt"), Error);
  EXPECT_FALSE(is_given_file(folder / "corpus.txt"));
  fs::remove_all(folder);
}

TEST(GivenFiles, BelowANamedFolderAreNotReplaced) {
  const fs::path folder = new_folder(), elsewhere = new_folder();
  fs::create_directories(folder / "data" / "train");
  std::ofstream(folder / "data" / "train" / "cat.jpg") << "x";
  std::ofstream(folder / "beside.svg") << "x";
  fs::create_symlink(folder / "data" / "train" / "cat.jpg", elsewhere / "link");
  remember_named_path(folder / "data");
  EXPECT_THROW(refuse_given_file(folder / "data" / "train" / "cat.jpg"), Error);
  EXPECT_THROW(refuse_given_file(elsewhere / "link"), Error);
  EXPECT_NO_THROW(refuse_given_file(folder / "data" / "new.svg")) << "it replaces nothing";
  EXPECT_NO_THROW(refuse_given_file(folder / "beside.svg"));
  fs::remove_all(folder);
  fs::remove_all(elsewhere);
}

/// File systems give the number of a folder that is gone to the next one.
TEST(GivenFiles, AFolderThatIsGoneProtectsNoOther) {
  const fs::path above = new_folder();
  for (int i = 0; i < 8; ++i) {
    fs::create_directory(above / "data");
    std::ofstream(above / "data" / "x.svg") << "x";
    EXPECT_NO_THROW(refuse_given_file(above / "data" / "x.svg")) << i;
    fs::rename(above / "data", above / "named");
    remember_named_path(above / "named");
    fs::remove_all(above / "named");
  }
  fs::remove_all(above);
}

TEST(GivenFiles, BelowANamedFolderMayBeReplacedByACommandThatWorksThere) {
  const fs::path folder = new_folder(), before = fs::current_path();
  fs::create_directory(folder / "work");
  std::ofstream(folder / "work" / "x.svg") << "x";
  fs::current_path(folder / "work");
  remember_named_path(folder);
  EXPECT_NO_THROW(refuse_given_file("x.svg"));
  fs::current_path(before);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pipewright
