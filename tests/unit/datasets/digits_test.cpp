// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

// Counted in the CSV that the digits were made from.
TEST(Digits, AreTheKnownImages) {
  const auto digits = make_dataset("digits", "{}");
  digits->open({});
  EXPECT_EQ(digits->sample_shape(), (std::vector<std::int64_t>{1, 8, 8}));
  EXPECT_EQ(digits->classes(), 10);
  ASSERT_EQ(digits->size(Split::Train), 1437);
  ASSERT_EQ(digits->size(Split::Test), 360);

  const Batch train = digits->batch(Split::Train, first_indices(1437), nullptr);
  const Batch test = digits->batch(Split::Test, first_indices(360), nullptr);
  const auto train_y = values_of<std::int64_t>(train.y), test_y = values_of<std::int64_t>(test.y);
  EXPECT_EQ(std::accumulate(train_y.begin(), train_y.end(), std::int64_t{0}), 6449);
  EXPECT_EQ(std::accumulate(test_y.begin(), test_y.end(), std::int64_t{0}), 1621);
  EXPECT_EQ(std::vector(train_y.begin(), train_y.begin() + 10), first_indices(10));
  EXPECT_EQ(std::vector(test_y.end() - 5, test_y.end()),
            (std::vector<std::int64_t>{9, 0, 8, 9, 8}));

  const auto train_x = values_of<float>(train.x[0]), test_x = values_of<float>(test.x[0]);
  EXPECT_EQ(16 * std::accumulate(train_x.begin(), train_x.end(), 0.0), 449372);
  EXPECT_EQ(16 * std::accumulate(test_x.begin(), test_x.end(), 0.0), 112346);
  EXPECT_EQ(std::vector(train_x.begin(), train_x.begin() + 6),
            (std::vector<float>{0, 0, 5 / 16.f, 13 / 16.f, 9 / 16.f, 1 / 16.f}));
  EXPECT_EQ(std::vector(test_x.begin(), test_x.begin() + 5),
            (std::vector<float>{0, 4 / 16.f, 1, 15 / 16.f, 2 / 16.f}));
}

}  // namespace
}  // namespace pipewright
