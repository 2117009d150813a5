// SPDX-License-Identifier: Apache-2.0
// What a compiled scheme tells of itself before its code runs.
#include "core/base/stamp.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace pipewright {
namespace {

// In two parts: this test's own bytes hold no such stamp.
const std::string kStart = concat("pipewright ", "part|");

PIPEWRIGHT_STAMP(model, "2.0.0", here)

TEST(Stamp, TheMacroLeavesWhatIsRead) {
  const std::vector<Stamp> expected{
      {"model", PIPEWRIGHT_VERSION, PIPEWRIGHT_STANDARD_LIBRARY, "2.0.0", "here"}};
  EXPECT_EQ(read_stamps({stamp_of_model_here, sizeof stamp_of_model_here}), expected);
}

TEST(Stamp, AllOfAFileAreFoundAmongOtherBytes) {
  const std::string bytes = concat("\x7f", "ELF…", kStart, "scheme|0.1.0|libstdc++|none|a", '\0',
                                   "…", kStart, "loss|7.0.1|libc++|2.1.0|b", '\0');
  const std::vector<Stamp> expected{{"scheme", "0.1.0", "libstdc++", "none", "a"},
                                    {"loss", "7.0.1", "libc++", "2.1.0", "b"}};
  EXPECT_EQ(read_stamps(bytes), expected);
}

TEST(Stamp, WhatIsNoWholeStampIsNone) {
  for (const std::string& bytes :
       {std::string(), kStart, concat(kStart, '\0'),
        concat(kStart, "loss|0.1.0|libstdc++|none|cut off"),
        concat(kStart, "0.1.0|two parts", '\0'), concat(kStart, "a|b|c|d|e|six", '\0')})
    EXPECT_TRUE(read_stamps(bytes).empty()) << bytes;
}

Stamp stamp(const std::string& version, const std::string& library = PIPEWRIGHT_STANDARD_LIBRARY,
            const std::string& libtorch = PIPEWRIGHT_WITHOUT_LIBTORCH) {
  return {"model", version, library, libtorch, "x"};
}

TEST(Stamp, OnlyTheThirdNumberOfTheVersionMayDiffer) {
  const std::string version = PIPEWRIGHT_VERSION;
  const std::vector<std::string> parts = split(version, '.');  // "1", "0", "0-rc", "1"
  const std::string minor = concat(parts[0], ".", parts[1]);
  const std::size_t dash = version.find('-');
  const std::string candidate = dash == std::string::npos ? "" : version.substr(dash);
  EXPECT_EQ(misfit(stamp(version), "2.0.0"), "");
  EXPECT_EQ(misfit(stamp(concat(minor, ".77", candidate)), "2.0.0"), "");
  EXPECT_EQ(misfit(stamp("99.1.0"), "2.0.0"),
            concat("was compiled with Pipewright 99.1.0, this is ", version,
                   "; build it again with find_package(Pipewright ", minor, ")"));
  EXPECT_NE(misfit(stamp(concat(minor, ".0-rc.99")), "2.0.0"), "");
  EXPECT_NE(misfit(stamp(concat(parts[0], ".99.0", candidate)), "2.0.0"), "");
  EXPECT_NE(misfit(stamp(""), "2.0.0"), "");
}

TEST(Stamp, AnotherStandardLibraryDoesNotFit) {
  const std::string why = misfit(stamp(PIPEWRIGHT_VERSION, "libother"), "2.0.0");
  EXPECT_TRUE(why.starts_with("was compiled with libother, this Pipewright with ")) << why;
}

TEST(Stamp, AnotherLibTorchDoesNotFitWhatNeedsOne) {
  const std::string version = PIPEWRIGHT_VERSION, library = PIPEWRIGHT_STANDARD_LIBRARY;
  EXPECT_EQ(misfit(stamp(version, library, "2.11.0"), "2.11.0"), "");
  const std::string why = misfit(stamp(version, library, "2.10.0"), "2.11.0");
  EXPECT_TRUE(why.starts_with("was compiled with LibTorch 2.10.0, this Pipewright with 2.11.0"))
      << why;
}

}  // namespace
}  // namespace pipewright
