// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/pair_merging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace pipewright {
namespace {

using Symbols = std::vector<std::string>;
using Ranks = std::map<std::pair<std::string, std::string>, std::int32_t>;

std::int32_t rank_in(const Ranks& ranks, const std::string& first, const std::string& second) {
  const auto found = ranks.find({first, second});
  return found == ranks.end() ? kNoMerge : found->second;
}

Symbols letters_of(const std::string& word) {
  Symbols letters;
  for (const char letter : word) letters.emplace_back(1, letter);
  return letters;
}

Symbols merged(const std::string& word, const Ranks& ranks) {
  return merge_pairs(
      letters_of(word),
      [&](const std::string& first, const std::string& second) {
        return rank_in(ranks, first, second);
      },
      std::plus<std::string>());
}

/// As the papers have it: looks through the whole word for the best pair, merges it everywhere, and
/// begins anew.
Symbols merged_plainly(const std::string& word, const Ranks& ranks) {
  Symbols symbols = letters_of(word);
  for (;;) {
    std::int32_t best = kNoMerge;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      best = std::min(best, rank_in(ranks, symbols[i], symbols[i + 1]));
    if (best == kNoMerge) return symbols;
    Symbols shorter;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const bool merges =
          i + 1 < symbols.size() && rank_in(ranks, symbols[i], symbols[i + 1]) == best;
      shorter.push_back(merges ? symbols[i] + symbols[i + 1] : symbols[i]);
      if (merges) ++i;
    }
    symbols = shorter;
  }
}

std::string random_word(std::mt19937& random, std::size_t letters) {
  std::string word;
  for (std::size_t i = 0; i < letters; ++i) word += static_cast<char>('a' + random() % 3);
  return word;
}

TEST(PairMerging, KeepsWordsWithoutMerges) {
  EXPECT_EQ(merged("", {}), Symbols{});
  EXPECT_EQ(merged("a", {}), Symbols{"a"});
  EXPECT_EQ(merged("abc", {{{"b", "a"}, 1}}), (Symbols{"a", "b", "c"}));
}

TEST(PairMerging, MergesFromTheLeft) {
  EXPECT_EQ(merged("aaaaa", {{{"a", "a"}, 1}}), (Symbols{"aa", "aa", "a"}));
}

// A file may list "a + bc" before "b + c": every b + c is then merged before the first a + bc.
TEST(PairMerging, MergesAPairEverywhereBeforeThoseThatItMakes) {
  const Ranks ranks{{{"bc", "b"}, 1}, {{"b", "c"}, 2}};
  EXPECT_EQ(merged("bcbc", ranks), (Symbols{"bc", "bc"}));
}

// Pairs of any symbols, in any order, also such as no learner would list them.
TEST(PairMerging, EqualsThePlainLoop) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Symbols known{"a", "b", "c"};
    Ranks ranks;
    while (ranks.size() < 12) {
      const std::string first = known[random() % known.size()],
                        second = known[random() % known.size()];
      const auto rank = static_cast<std::int32_t>(random() % 1000 * 100 + ranks.size());
      if (ranks.emplace(std::pair(first, second), rank).second) known.push_back(first + second);
    }
    for (const std::size_t letters : {2U, 7U, 40U, 200U}) {
      const std::string word = random_word(random, letters);
      ASSERT_EQ(merged(word, ranks), merged_plainly(word, ranks)) << word;
    }
  }
}

// The plain loop takes 10^11 steps for this word.
TEST(PairMerging, TakesLongWords) {
  const std::string word(1'000'000, 'a');
  const Ranks ranks{{{"a", "a"}, 1}, {{"aa", "aa"}, 2}};
  EXPECT_EQ(merged(word, ranks).size(), word.size() / 4);
}

}  // namespace
}  // namespace pipewright
