// SPDX-License-Identifier: Apache-2.0
// k_means, against Lloyd's algorithm value by value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

using Values = std::vector<double>;

std::size_t nearest(const Values& book, double x) {
  std::size_t best = 0;
  for (std::size_t j = 1; j < book.size(); ++j)
    if (std::abs(book[j] - x) < std::abs(book[best] - x)) best = j;
  return best;
}

/// From the quantiles (j + ½)/size.
Values lloyd(Values values, std::size_t size, int rounds) {
  std::ranges::sort(values);
  Values book;
  for (std::size_t j = 0; j < size; ++j)
    book.push_back(values[static_cast<std::size_t>((static_cast<double>(j) + 0.5) *
                                                   static_cast<double>(values.size()) /
                                                   static_cast<double>(size))]);
  for (int round = 0; round < rounds; ++round) {
    Values sums(size), members(size);
    for (const double x : values) {
      sums[nearest(book, x)] += x;
      members[nearest(book, x)] += 1;
    }
    for (std::size_t j = 0; j < size; ++j)
      if (members[j] > 0) book[j] = sums[j] / members[j];
  }
  return book;
}

Values values_of(const at::Tensor& x) {
  const at::Tensor doubles = x.to(at::kDouble).contiguous().view({-1});
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + x.numel()};
}

TEST(KMeans, IsLloydsAlgorithm) {
  at::manual_seed(1);
  for (const int bits : {1, 2, 4})
    for (const int rounds : {0, 1, 6}) {
      const at::Tensor x = at::randn({41, 13}) * at::randn({41, 1}).exp();
      const Values values = values_of(x), book = lloyd(values, std::size_t{1} << bits, rounds);
      CodecTrial codec("k_means", concat("{bits: ", bits, ", rounds: ", rounds, "}"));
      const at::Tensor frame = codec.frame(x);
      EXPECT_EQ(CodecTrial::payload(frame), 4 * (1 << bits) + (533 * bits + 7) / 8);
      const Values arrived = values_of(codec.arrived(frame));
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(arrived[i], book[nearest(book, values[i])],
                    std::abs(book.back()) * tolerance::kMeansOfRounds);
    }
}

TEST(KMeans, LosesNothingWhereTheCodebookHasAllValues) {
  const at::Tensor x = at::tensor({3.F, -1.F, 7.5F, 0.F}).repeat({25}).view({4, 25});
  EXPECT_TRUE(CodecTrial("k_means", "{bits: 2}").round_trip(x).equal(x));
  EXPECT_TRUE(CodecTrial("k_means", "{bits: 6}").round_trip(x).equal(x));
}

TEST(KMeans, GivesWhatLiesInTheMiddleToTheLower) {
  // Quantiles −1 and 1 of six values; 0 is as near to both.
  const at::Tensor x = at::tensor({-1.F, -1.F, 0.F, 1.F, 1.F, 1.F});
  EXPECT_TRUE(CodecTrial("k_means", "{bits: 1, rounds: 0}")
                  .round_trip(x)
                  .equal(at::tensor({-1.F, -1.F, -1.F, 1.F, 1.F, 1.F})));
}

}  // namespace
}  // namespace pipewright::testing
