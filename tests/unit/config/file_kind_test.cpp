// SPDX-License-Identifier: Apache-2.0
#include "core/config/file_kind.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/system/file.h"

namespace pipewright {
namespace {

const FileKind kRecipe{.name = "recipe", .keys = {"flour", "eggs"}};

/// What is said of a file with this text; "" if it is read. Other shards have files of their own.
std::string said_of(const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) /
      ("pipewright_file_kind_test-" + std::to_string(::getpid()) + ".yaml");
  write_file(file, text);
  try {
    load_file_of(kRecipe, file);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(FileKind, IsReadFromAKeyOfItsOwn) {
  for (const char* text : {"flour: 1\n", "{\"eggs\": 2}", "{name: a, eggs: 2}",
                           "{\"name\": {\"x\": [1, 2]},\n \"flour\": 2}", "\n{name: a,\n  eggs: 2}",
                           "other: 1\neggs: 2\n", "", "{}", "\n", "# said\n{name: a, eggs: 2}",
                           "--- {name: a, eggs: 2}", "---\n# said\n{name: a,\n # more\n eggs: 2}\n",
                           "{name: \"a}b\", eggs: 2}", "{? name : a, eggs: 2}",
                           "{name: a, ? eggs : 2}", "? eggs\n: 2\n", "{name: 'a, [b', eggs: 2}"})
    EXPECT_EQ(said_of(text), "") << text;
}

// Whatever the file holds, and however it is damaged, none of it may be shown.
TEST(FileKind, NeverQuotesAFileOfAnother) {
  for (const char* text :
       {"root:x:0:0:secret:/root\n", "secret: [1", "- secret\n", "secret", "secret: 1\nsecret: 2\n",
        "\"secret", "%secret\n---\n", "secret: &a *a\n", "a: flour: secret\n",
        "x: {eggs: secret}\n", "secret: yes\n", "\tsecret: 1\n", "- flour: secret\n",
        "[{flour: secret}]", "{x: secret, y: {flour: 1}}", "? secret\n: {eggs: 1}\n",
        "{a: {flour: secret", "{a: [secret, flour: secret"}) {
    const std::string said = said_of(text);
    EXPECT_EQ(said, "is no recipe, which has keys such as 'flour:'") << text;
    EXPECT_EQ(said.find("secret"), std::string::npos) << text;
  }
}

TEST(FileKind, QuotesItsOwnFaults) {
  EXPECT_NE(said_of("flour: 1\nsecret: [1\n").find("["), std::string::npos);
}

}  // namespace
}  // namespace pipewright
