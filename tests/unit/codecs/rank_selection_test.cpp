// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/rank_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace pipewright::testing {
namespace {

using FloatValues = std::vector<float>;

/// At ranks of the ends of 8 groups, and a few others, against a plain sort.
void expect_as_sorted(const FloatValues& values, const char* what) {
  const std::int64_t n = std::ssize(values);
  std::vector<std::int64_t> ranks{0};
  for (std::int64_t g = 1; g < 8; ++g)
    for (const std::int64_t rank : {g * n / 8 - 1, g * n / 8})
      if (rank > ranks.back()) ranks.push_back(rank);
  if (n - 1 > ranks.back()) ranks.push_back(n - 1);
  FloatValues sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const FloatValues found = values_at_ranks(values, ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const float expected = sorted[static_cast<std::size_t>(ranks[i])];
    EXPECT_EQ(found[i], expected) << what << ", rank " << ranks[i] << " of " << n;
    EXPECT_FALSE(found[i] == 0 && std::signbit(found[i])) << what;
  }
}

FloatValues drawn(std::size_t n, const std::function<double(double, std::size_t)>& make) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  FloatValues values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(make(normal(random), i));
  return values;
}

TEST(RankSelection, IsThatOfASort) {
  for (const std::size_t n : {1u, 2u, 9u, 1000u, 4097u, 5000u, 100'000u, 300'001u}) {
    const auto at_least = [&](const char* what, const auto& make) {
      expect_as_sorted(drawn(n, make), what);
    };
    at_least("normal", [](double x, std::size_t) { return x; });
    at_least("one constant", [](double, std::size_t) { return 2.5; });
    at_least("rectified", [](double x, std::size_t) { return std::max(x, 0.0); });
    at_least("cut off at 6", [](double x, std::size_t) { return std::clamp(5 * x, 0.0, 6.0); });
    at_least("few values", [](double x, std::size_t) { return std::floor(2 * x); });
    at_least("many few values", [](double x, std::size_t) { return std::floor(200 * x) / 64; });
    at_least("both zeros", [](double x, std::size_t) { return x > 0.5 ? x : std::copysign(0, x); });
    at_least("mostly both zeros",
             [](double x, std::size_t) { return std::abs(x) > 2 ? x : std::copysign(0, x); });
    at_least("tiny", [](double x, std::size_t) { return x * 1e-44; });
    at_least("huge", [](double x, std::size_t) { return x * 5e37; });
    at_least("heavy tails", [](double x, std::size_t) { return std::exp(8 * x); });
    at_least("ascending", [](double, std::size_t i) { return static_cast<double>(i); });
    at_least("descending", [](double, std::size_t i) { return -static_cast<double>(i); });
    at_least("periodic", [](double x, std::size_t i) { return i % 16 == 0 ? x : 100 + x * 1e-3; });
  }
}

/// The sample looks at fixed places; values that are elsewhere it cannot expect.
TEST(RankSelection, IsExactWhereTheSampleIsMisleading) {
  std::mt19937 random(3);
  // Everything is greater where the sample does not look.
  FloatValues marked(200'000);
  for (std::size_t i = 0; i < marked.size(); ++i) marked[i] = static_cast<float>(i);
  FloatValues misleading(marked.size());
  for (std::size_t i = 0; i < misleading.size(); ++i)
    misleading[i] = 10'000 + static_cast<float>(random() % 100'000);
  for (const std::int32_t seen : sorted_sample(marked, 12'500))
    misleading[static_cast<std::size_t>(value_of(seen))] = static_cast<float>(random() % 1000);
  expect_as_sorted(misleading, "hidden from the sample");
}

TEST(RankSelection, ShowsAtItsEndsWhatIsNotFinite) {
  for (const std::size_t n : {10u, 50'000u})
    for (const float odd : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      FloatValues values = drawn(n, [](double x, std::size_t) { return x; });
      values[n / 3] = odd;
      const FloatValues found =
          values_at_ranks(values, std::vector<std::int64_t>{0, static_cast<std::int64_t>(n) - 1});
      EXPECT_FALSE(std::isfinite(found[0]) && std::isfinite(found[1])) << odd;
    }
}

TEST(RankSelection, FindsTheEndsOfWhatLiesBetweenEdges) {
  const FloatValues values{3, -0.0f, 7, 5, -2, 5.5f};
  const std::vector<std::int32_t> edges{key_of(0.5f), key_of(1), key_of(5.5f), key_of(9)};
  const std::vector<Extremes> found = extremes_between(values, edges, in_one_piece);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(value_of(found[0].least), -2);
  EXPECT_EQ(value_of(found[0].most), 0);
  EXPECT_GT(found[1].least, found[1].most);
  EXPECT_EQ(value_of(found[2].least), 3);
  EXPECT_EQ(value_of(found[2].most), 5);
  EXPECT_EQ(value_of(found[3].least), 5.5f);
  EXPECT_EQ(value_of(found[3].most), 7);
  EXPECT_GT(found[4].least, found[4].most);
}

TEST(RankSelection, FindsTheSameEndsBetweenManyEdges) {
  const FloatValues values =
      drawn(10'000, [](double x, std::size_t) { return std::floor(20 * x); });
  std::vector<std::int32_t> edges;
  for (int i = -30; i < 30; ++i) edges.push_back(key_of(static_cast<float>(i) + 0.5f));
  const std::vector<Extremes> found = extremes_between(values, edges, in_one_piece);
  ASSERT_EQ(found.size(), edges.size() + 1);
  for (std::size_t i = 1; i < edges.size(); ++i) {  // each integer has a cell of its own
    const auto integer = static_cast<float>(static_cast<int>(i) - 30);
    const bool there = std::find(values.begin(), values.end(), integer) != values.end();
    EXPECT_EQ(found[i].least <= found[i].most, there) << integer;
    if (there) {
      EXPECT_EQ(value_of(found[i].least), integer);
      EXPECT_EQ(value_of(found[i].most), integer);
    }
  }
  EXPECT_EQ(value_of(found.front().least), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(value_of(found.back().most), *std::max_element(values.begin(), values.end()));
}

}  // namespace
}  // namespace pipewright::testing
