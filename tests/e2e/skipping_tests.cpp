// SPDX-License-Identifier: Apache-2.0
// Tests that skip on purpose, so that skips_test.py can see what comes of it.
#include "tests/unit/skips.h"

TEST(Skipping, WhereThereIsNoGpu) {
  PIPEWRIGHT_LACKS("gpu") << "there are none";
}

TEST(Skipping, WithoutAWordForIt) {
  GTEST_SKIP() << "no reason at all";
}

TEST(Skipping, Passes) {}
