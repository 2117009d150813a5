// SPDX-License-Identifier: Apache-2.0
// What a compiled scheme tells of itself before its code runs.
#include "core/base/stamp.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace pipewright {
namespace {

// In two parts: this test's own bytes hold no such stamp.
const std::string kStart = concat("pipewright ", "scheme|");

PIPEWRIGHT_STAMP(here)

TEST(Stamp, TheMacroLeavesWhatIsRead) {
  const std::vector<Stamp> expected{{PIPEWRIGHT_VERSION, PIPEWRIGHT_STANDARD_LIBRARY, "here"}};
  EXPECT_EQ(read_stamps({stamp_of_here, sizeof stamp_of_here}), expected);
}

TEST(Stamp, AllOfAFileAreFoundAmongOtherBytes) {
  const std::string bytes = concat("\x7f", "ELF…", kStart, "0.1.0|libstdc++|a", '\0', "…", kStart,
                                   "7.0.1|libc++|b", '\0');
  const std::vector<Stamp> expected{{"0.1.0", "libstdc++", "a"}, {"7.0.1", "libc++", "b"}};
  EXPECT_EQ(read_stamps(bytes), expected);
}

TEST(Stamp, WhatIsNoWholeStampIsNone) {
  for (const std::string& bytes :
       {std::string(), kStart, concat(kStart, '\0'), concat(kStart, "0.1.0|libstdc++|cut off"),
        concat(kStart, "0.1.0|two parts", '\0'), concat(kStart, "a|b|c|four", '\0')})
    EXPECT_TRUE(read_stamps(bytes).empty()) << bytes;
}

TEST(Stamp, OnlyTheLastNumberOfTheVersionMayDiffer) {
  const std::string library = PIPEWRIGHT_STANDARD_LIBRARY, version = PIPEWRIGHT_VERSION;
  EXPECT_EQ(misfit({version, library, "x"}), "");
  EXPECT_EQ(misfit({version + "7", library, "x"}), "");
  EXPECT_EQ(misfit({"99.1.0", library, "x"}),
            concat("was compiled with Pipewright 99.1.0, this is ", version,
                   "; build it again with find_package(Pipewright ",
                   version.substr(0, version.rfind('.')), ")"));
  EXPECT_NE(misfit({"", library, "x"}), "");
}

TEST(Stamp, AnotherStandardLibraryDoesNotFit) {
  const std::string why = misfit({PIPEWRIGHT_VERSION, "libother", "x"});
  EXPECT_TRUE(why.starts_with("was compiled with libother, this Pipewright with ")) << why;
}

}  // namespace
}  // namespace pipewright
