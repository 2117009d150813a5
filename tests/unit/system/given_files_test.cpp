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

TEST(GivenFiles, AreKnownUnderEveryNameUntilTheyAreGone) {
  std::string name = (fs::temp_directory_path() / "pipewright-XXXXXX").string();
  const fs::path folder = ::mkdtemp(name.data());
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

}  // namespace
}  // namespace pipewright
