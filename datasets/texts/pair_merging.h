// SPDX-License-Identifier: Apache-2.0
/// The merging of adjacent symbols, which every byte-pair encoding does to a word.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace pipewright {

/// The rank of a pair that is not merged.
inline constexpr std::int32_t kNoMerge = std::numeric_limits<std::int32_t>::max();

/// Merges the pairs of the least rank, from left to right and all of them before any other pair,
/// until no pair has a rank. `rank_of(first, second)` is kNoMerge or a number that no other pair
/// has; `joined(first, second)` is the symbol in their place, which must be neither of them. Takes
/// n log n steps for n symbols, however long a word somebody's file has.
template <class Symbol, class RankOf, class Joined>
std::vector<Symbol> merge_pairs(std::vector<Symbol> symbols, const RankOf& rank_of,
                                const Joined& joined) {
  struct Pair {
    std::int32_t rank;
    std::size_t at;  ///< place of its first symbol
    auto operator<=>(const Pair&) const = default;
  };
  const std::size_t none = symbols.size();
  std::vector<std::size_t> next(none), previous(none);
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto rank_at = [&](std::size_t at) {
    return next[at] == none ? kNoMerge : rank_of(symbols[at], symbols[next[at]]);
  };
  const auto add = [&](std::size_t at) {
    if (const std::int32_t rank = rank_at(at); rank != kNoMerge) pairs.push({rank, at});
  };
  for (std::size_t at = 0; at < none; ++at) {
    next[at] = at + 1;
    previous[at] = at == 0 ? none : at - 1;
  }
  for (std::size_t at = 0; at < none; ++at) add(at);

  std::vector<std::size_t> made;
  while (!pairs.empty()) {
    const std::int32_t rank = pairs.top().rank;
    for (made.clear(); !pairs.empty() && pairs.top().rank == rank;) {
      const std::size_t at = pairs.top().at;
      pairs.pop();
      if (rank_at(at) != rank) continue;  // one of the two has been merged with another since
      const std::size_t second = next[at];
      symbols[at] = joined(symbols[at], symbols[second]);
      next[at] = std::exchange(next[second], none);
      if (next[at] != none) previous[next[at]] = at;
      made.push_back(at);
    }
    for (const std::size_t at : made) {  // only now: their pairs may have a lesser rank
      add(at);
      if (previous[at] != none) add(previous[at]);
    }
  }
  std::vector<Symbol> merged;
  for (std::size_t at = 0; at != none; at = next[at]) merged.push_back(std::move(symbols[at]));
  return merged;
}

}  // namespace pipewright
