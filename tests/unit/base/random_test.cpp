// SPDX-License-Identifier: Apache-2.0
// Random numbers as a function of (seed, purpose, …, index): known answers, independence, moments.
#include "core/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

using Words = std::array<std::uint32_t, 4>;

constexpr int kDraws = 100'000;
using tolerance::kSigmas;

// The vectors of Random123's test suite (kat_vectors, philox4x32 10).
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(StableHash, IsFnv1a) {
  EXPECT_EQ(stable_hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(stable_hash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(stable_hash("foobar"), 0x85944171f73967e8u);
}

TEST(RandomStream, IsAFunctionOfItsIndex) {
  const RandomStream one(7, "dropout", 1, 2), same(7, "dropout", 1, 2);
  std::vector<double> forwards, backwards;
  for (std::uint64_t i = 0; i < 50; ++i) forwards.push_back(one.uniform(i));
  for (std::uint64_t i = 50; i-- > 0;) backwards.insert(backwards.begin(), same.uniform(i));
  EXPECT_EQ(forwards, backwards);
}

TEST(RandomStream, DependsOnEverythingThatNamesIt) {
  std::set<Words> blocks;
  blocks.insert(RandomStream(7, "dropout", 1, 2).block(0));
  blocks.insert(RandomStream(8, "dropout", 1, 2).block(0));
  blocks.insert(RandomStream(7, "shuffle", 1, 2).block(0));
  blocks.insert(RandomStream(7, "dropout", 2, 2).block(0));
  blocks.insert(RandomStream(7, "dropout", 1, 3).block(0));
  blocks.insert(RandomStream(7, "dropout", 2, 1).block(0));
  blocks.insert(RandomStream(7, "dropout", 1, 2).block(1));
  EXPECT_EQ(blocks.size(), 7u);
}

TEST(RandomStream, BitsAreTheWordsOfItsBlocks) {
  const RandomStream stream(3, "bits");
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(stream.bits(i), stream.block(i / 4)[i % 4]);
}

/// Sum of (x−mean)·(y−mean) over n uniform pairs has standard deviation √n / 12.
TEST(RandomStream, NeighbouringStreamsAreUncorrelated) {
  const RandomStream first(1, "a", 0, 0), by_seed(2, "a", 0, 0), by_name(1, "b", 0, 0),
      by_number(1, "a", 1, 0);
  for (const RandomStream& other : {by_seed, by_name, by_number}) {
    double sum = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i)
      sum += (first.uniform(i) - 0.5) * (other.uniform(i) - 0.5);
    EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(kDraws) / 12);
  }
}

TEST(RandomStream, NeighbouringElementsAreUncorrelated) {
  const RandomStream stream(1, "a");
  double sum = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i)
    sum += (stream.uniform(i) - 0.5) * (stream.uniform(i + 1) - 0.5);
  EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(kDraws) / 12);
}

/// Uniform: mean 1/2, variance 1/12, variance of the square of the deviation 1/80 − 1/144.
TEST(RandomStream, UniformHasItsMoments) {
  const RandomStream stream(11, "uniform");
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = stream.uniform(i);
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += (x - 0.5) * (x - 0.5);
  }
  EXPECT_NEAR(sum / kDraws, 0.5, kSigmas * std::sqrt(1. / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1. / 12, kSigmas * std::sqrt((1. / 80 - 1. / 144) / kDraws));
}

/// Normal: the mean of x, x², x³, x⁴ is 0, 1, 0, 3, of variance 1, 2, 15, 96.
TEST(RandomStream, NormalHasItsMoments) {
  const RandomStream stream(12, "normal");
  std::array<double, 4> sums{};
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = stream.normal(i);
    ASSERT_TRUE(std::isfinite(x));
    double power = 1;
    for (double& sum : sums) sum += power *= x;
  }
  constexpr std::array<double, 4> kMean{0, 1, 0, 3}, kVariance{1, 2, 15, 96};
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_NEAR(sums[i] / kDraws, kMean[i], kSigmas * std::sqrt(kVariance[i] / kDraws))
        << "moment " << i + 1;
}

TEST(RandomStream, NormalReachesItsTails) {
  const RandomStream stream(13, "normal");
  int beyond_three = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) beyond_three += std::abs(stream.normal(i)) > 3 ? 1 : 0;
  constexpr double kExpected = 0.0026998 * kDraws;
  EXPECT_NEAR(beyond_three, kExpected, kSigmas * std::sqrt(kExpected));
}

/// Chi-square with n−1 degrees of freedom: mean n−1, variance 2(n−1).
TEST(RandomStream, BelowIsInRangeAndUnbiased) {
  for (const std::uint64_t n : {1u, 2u, 3u, 10u, 97u}) {
    const RandomStream stream(14, "below", n);
    std::vector<double> counts(n, 0);
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const std::uint64_t drawn = stream.below(i, n);
      ASSERT_LT(drawn, n);
      ++counts[drawn];
    }
    const double expected = static_cast<double>(kDraws) / static_cast<double>(n);
    double chi_square = 0;
    for (const double count : counts)
      chi_square += (count - expected) * (count - expected) / expected;
    const double freedom = static_cast<double>(n - 1);
    EXPECT_LE(chi_square, freedom + kSigmas * std::sqrt(2 * freedom)) << "n = " << n;
  }
}

TEST(RandomStream, BelowReachesLargeRanges) {
  const RandomStream stream(15, "below");
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  std::uint64_t largest = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t drawn = stream.below(i, kMany);
    ASSERT_LT(drawn, kMany);
    largest = std::max(largest, drawn);
  }
  EXPECT_GT(largest, kMany / 100 * 98);
}

}  // namespace
}  // namespace pipewright
