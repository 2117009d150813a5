// SPDX-License-Identifier: Apache-2.0
// One error type; its kind is the exit code that scripts rely on.
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

TEST(Error, SaysWhereBeforeWhat) {
  const Error error(ErrorKind::Experiment, "expected a number", "f.yaml:3:5");
  EXPECT_STREQ(error.what(), "f.yaml:3:5: expected a number");
  EXPECT_EQ(error.message(), "expected a number");
  EXPECT_EQ(error.where(), "f.yaml:3:5");
}

TEST(Error, NeedsNoPlace) {
  EXPECT_STREQ(Error(ErrorKind::Data, "gone").what(), "gone");
}

TEST(Error, KindsAreTheExitCodes) {
  EXPECT_EQ(static_cast<int>(ErrorKind::Experiment), 2);
  EXPECT_EQ(static_cast<int>(ErrorKind::Data), 3);
  EXPECT_EQ(static_cast<int>(ErrorKind::Schedule), 4);
  EXPECT_EQ(static_cast<int>(ErrorKind::Worker), 5);
  EXPECT_EQ(static_cast<int>(ErrorKind::NotFinite), 6);
  EXPECT_EQ(static_cast<int>(ErrorKind::Sweep), 7);
  EXPECT_EQ(static_cast<int>(ErrorKind::Bug), 70);
  EXPECT_EQ(static_cast<int>(ErrorKind::Interrupted), 130);
}

TEST(Check, AFailureIsABugWithItsConditionPlaceAndDetail) {
  try {
    PIPEWRIGHT_CHECK(1 > 2, "one is ", 1);
    FAIL() << "the check did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Bug);
    EXPECT_NE(error.message().find("'1 > 2' does not hold: one is 1"), std::string::npos);
    EXPECT_NE(error.where().find("error_test.cpp:"), std::string::npos);
  }
}

TEST(Check, DoesNothingWhenItHolds) {
  EXPECT_NO_THROW(PIPEWRIGHT_CHECK(true, "never said"));
}

}  // namespace
}  // namespace pipewright
