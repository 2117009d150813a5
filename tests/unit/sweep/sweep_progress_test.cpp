// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_progress.h"

#include <gtest/gtest.h>

#include "core/sweep/run_progress.h"
#include "core/training/progress.h"

namespace pipewright {
namespace {

TEST(SweepPace, SaysNothingBeforeTheFirstNews) {
  EXPECT_FALSE(SweepPace().left(10, 5).has_value());
}

TEST(SweepPace, FallsSteadilyWhereRunsTakeEqualTimes) {
  // One run after another, 20 s each, of four epochs: news every 5 s. Five runs take 100 s.
  SweepPace pace;
  for (int second = 0; second <= 100; ++second) {
    if (second % 5 == 0) pace.news(second, second / 20.0);
    const auto left = pace.left(second, 5);
    EXPECT_EQ(left.has_value(), second >= 5) << second;
    if (left) {
      EXPECT_EQ(*left, 100 - second) << "at " << second;
    }
  }
}

TEST(SweepPace, HasAnEstimateBeforeTheFirstRunEnds) {
  SweepPace pace;
  pace.news(5, 0.25);
  EXPECT_EQ(pace.left(5, 4), 75);
}

TEST(SweepPace, SaysNothingIsLeftWhereTheLastRunsTakeLonger) {
  SweepPace pace;
  pace.news(40, 2);
  EXPECT_EQ(pace.left(65, 3), 0);
}

TEST(SweepPace, NewsOfNothingNewChangesNothing) {
  SweepPace pace;
  pace.news(20, 1);
  pace.news(30, 1);
  EXPECT_EQ(pace.left(30, 3), 30);
}

TEST(TrainedShare, IsThatOfTheLastLineThatTellsOne) {
  EXPECT_EQ(trained_share(""), 0);
  EXPECT_EQ(trained_share("epoch 1/5  loss 2.30  test loss 2.20  1.0 s (100 samples/s)\n"), 0.2);
  EXPECT_EQ(trained_share("epoch 1/5  loss 2.30\nepoch 2/5  loss 2.20\nwarning: none\n"), 0.4);
  EXPECT_EQ(trained_share("epoch 1/5  loss 2.30\n300/1000 mini-batches, 3/s, 4 min left\n"), 0.3);
  EXPECT_EQ(trained_share("epoch 1/5  loss 2.30\nmini-batch 250/1000  test loss 2.20\n"), 0.25);
  EXPECT_EQ(trained_share("epoch 1/0  loss\nepoch x/5  loss\nepoch 1\n3/4 others, 1\n"), 0);
}

TEST(TrainedShare, IsReadFromWhatARunPrints) {
  EXPECT_EQ(progress_text(120, 0, 480, 10), "120/480 mini-batches, 12/s, 30 s left");
  EXPECT_EQ(trained_share(progress_text(120, 0, 480, 10) + "\n"), 0.25);
  EXPECT_EQ(progress_text(120, 60, 480, 10).substr(0, 26), "120/480 mini-batches, 6/s,")
      << "a session that went on at 60 has trained 60";
}

}  // namespace
}  // namespace pipewright
