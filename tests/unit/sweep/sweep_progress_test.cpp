// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace pipewright {
namespace {

TEST(SweepProgress, SaysLessAndLessTimeIsLeftWhileARunIsUnderWay) {
  double before = std::numeric_limits<double>::infinity();
  for (const double since : {0., 5., 19., 20., 30.}) {
    const double left = seconds_left(40, 2, 3, since);  // two runs of 20 s, and three to come
    EXPECT_EQ(left, 60 - since);
    EXPECT_LT(left, before);
    before = left;
  }
}

TEST(SweepProgress, SaysNothingIsLeftWhereTheLastRunsTakeLonger) {
  EXPECT_EQ(seconds_left(40, 2, 1, 25), 0);
}

}  // namespace
}  // namespace pipewright
