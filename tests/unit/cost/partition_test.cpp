// SPDX-License-Identifier: Apache-2.0
// Cutting layers into stages: never worse than trying every cut, and always the same answer.
#include "core/cost/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

#include "core/base/error.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

using Costs = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

/// What a cut is judged by: largest block, sum of squares, then the sizes themselves.
using Judgement = std::tuple<double, double, Sizes>;

Judgement judged(const Costs& costs, const Sizes& sizes) {
  double largest = 0, squares = 0;
  auto layer = costs.begin();
  for (const std::int64_t size : sizes) {
    double block = 0;
    for (std::int64_t i = 0; i < size; ++i) block += *layer++;
    largest = std::max(largest, block);
    squares += block * block;
  }
  return {largest, squares, sizes};
}

/// The best of all cuts into non-empty blocks.
Judgement brute_force(const Costs& costs, std::size_t parts) {
  std::vector<bool> cut(costs.size() - 1, false);  // after layer i?
  std::fill(cut.end() - static_cast<std::ptrdiff_t>(parts - 1), cut.end(), true);
  Judgement best{std::numeric_limits<double>::infinity(), 0, {}};
  do {
    Sizes sizes{1};
    for (const bool here : cut)
      if (here)
        sizes.push_back(1);
      else
        ++sizes.back();
    best = std::min(best, judged(costs, sizes));
  } while (std::next_permutation(cut.begin(), cut.end()));
  return best;
}

/// Compares with every cut, for every number of parts. Whole costs, so that sums are exact.
void expect_optimal(const Costs& costs) {
  for (std::size_t parts = 1; parts <= costs.size(); ++parts) {
    const Sizes sizes = min_max_partition(costs, static_cast<int>(parts));
    ASSERT_EQ(sizes.size(), parts);
    ASSERT_GT(*std::min_element(sizes.begin(), sizes.end()), 0) << "an empty block";
    ASSERT_EQ(judged(costs, sizes), brute_force(costs, parts))
        << parts << " parts of " << testing::PrintToString(costs);
  }
}

TEST(Partition, IsAsGoodAsTryingEveryCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    Costs costs(1 + random() % 12);
    for (double& cost : costs) cost = static_cast<double>(random() % 21);
    expect_optimal(costs);
  }
}

TEST(Partition, OfSumsIsThatOfTheSameCostsAskedOneByOne) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::size_t layers = 1 + random() % 30;
    const int parts = 1 + static_cast<int>(random() % layers);
    std::vector<double> costs(layers);
    for (double& cost : costs) cost = random() % 3 == 0 ? 0 : static_cast<double>(random() % 5) / 7;
    std::vector<double> sum(layers + 1, 0);
    for (std::size_t i = 0; i < layers; ++i) sum[i + 1] = sum[i] + costs[i];
    const auto cost = [&](std::size_t begin, std::size_t end, int) {
      return sum[end] - sum[begin];
    };
    EXPECT_EQ(min_max_partition(costs, parts), min_max_partition(layers, parts, cost));
  }
}

/// It would take minutes if every block were tried.
TEST(Partition, OfManyLayersTriesOnlyBlocksThatMayBeBest) {
  const std::vector<std::int64_t> sizes = min_max_partition(std::vector<double>(8000, 1), 100);
  EXPECT_EQ(sizes, std::vector<std::int64_t>(100, 80));
}

TEST(Partition, BearsZerosAndTies) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    Costs costs(1 + random() % 10);
    for (double& cost : costs) cost = random() % 3 == 0 ? 1 : 0;
    expect_optimal(costs);
  }
  expect_optimal(Costs(7, 0));
  expect_optimal(Costs(8, 5));
}

TEST(Partition, BearsCostsOfVeryDifferentSizes) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    Costs costs(1 + random() % 9);
    for (double& cost : costs) cost = static_cast<double>(1 << (random() % 20));
    expect_optimal(costs);
  }
}

TEST(Partition, OfMeasuredTimesIsOptimalUpToRounding) {
  std::mt19937 random(4);
  std::exponential_distribution<double> time(1);
  for (int round = 0; round < 30; ++round) {
    Costs costs(12);
    for (double& cost : costs) cost = time(random);
    for (const int parts : {2, 3, 5}) {
      const double best = std::get<0>(brute_force(costs, static_cast<std::size_t>(parts)));
      EXPECT_LE(std::get<0>(judged(costs, min_max_partition(costs, parts))),
                best * (1 + tolerance::kHundredOperations));
    }
  }
}

TEST(Partition, BeatsTheHeuristicOfTorchgpipe) {  // which cuts [2, 1, 6]: 55
  const Costs costs{10, 10, 10, 10, 9, 9, 9, 9, 9};
  EXPECT_EQ(std::get<0>(judged(costs, min_max_partition(costs, 3))), 30);
}

// The examples on which that heuristic is right, wrong, makes an empty block, or never ends.
TEST(Partition, OfKnownExamples) {
  EXPECT_EQ(min_max_partition(Costs{1, 2, 3, 4, 5, 6}, 2), (Sizes{4, 2}));
  EXPECT_EQ(min_max_partition(Costs{6, 5, 4, 3, 2, 1}, 2), (Sizes{2, 4}));
  EXPECT_EQ(min_max_partition(Costs{1, 100, 1, 100, 1, 100}, 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(min_max_partition(Costs{3, 0, 0, 0, 2, 3}, 4).size(), 4u);
  EXPECT_EQ(min_max_partition(Costs{0, 0, 0, 0, 0, 1, 2}, 6).size(), 6u);
}

TEST(Partition, OfEqualCutsTakesTheOneWhoseFirstBlocksAreShortest) {
  EXPECT_EQ(min_max_partition(Costs{5, 5, 5}, 2), (Sizes{1, 2}));
  EXPECT_EQ(min_max_partition(Costs(10, 1), 4), (Sizes{2, 2, 3, 3}));
  EXPECT_EQ(min_max_partition(Costs(4, 0), 2), (Sizes{1, 3}));
}

TEST(Partition, PrefersTheMoreEvenOfEqualMaxima) {  // 6|3,3|… before 6|3|3,…
  EXPECT_EQ(min_max_partition(Costs{6, 1, 1, 1, 1}, 3), (Sizes{1, 2, 2}));
}

TEST(Partition, RefusesEmptyBlocks) {
  for (const int parts : {-1, 0, 4}) EXPECT_THROW(min_max_partition(Costs{1, 2, 3}, parts), Error);
  EXPECT_THROW(min_max_partition(Costs{}, 1), Error);
}

}  // namespace
}  // namespace pipewright
