// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/ranked_words.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pipewright {
namespace {

constexpr std::string_view kBetweenWords = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n ";

/// Calls `visit` for each word of a text, until it returns false.
template <class Visit>
void for_each_ranked_word(std::string_view text, const Visit& visit) {
  for (std::size_t at = text.find_first_not_of(kBetweenWords); at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kBetweenWords, at), text.size());
    if (!visit(text.substr(at, end - at))) return;
    at = text.find_first_not_of(kBetweenWords, end);
  }
}

}  // namespace

void count_words(std::string_view text, WordCounts& counts) {
  for_each_ranked_word(text, [&](std::string_view word) {
    counts.add(word);
    return true;
  });
}

RankedWords::RankedWords(const WordCounts& counts, std::int64_t vocabulary) {
  std::vector<std::string> words;
  for (const auto& entry : counts.ranked()) {
    if (kFirstRanked + static_cast<std::int64_t>(words.size()) == vocabulary) break;
    words.push_back(entry.word);
  }
  index_ = WordIndex(std::move(words));
}

std::vector<std::int32_t> RankedWords::tokens(std::string_view text, std::int64_t most) const {
  std::vector<std::int32_t> tokens{kRankedStart};
  for_each_ranked_word(text, [&](std::string_view word) {
    if (static_cast<std::int64_t>(tokens.size()) == most) return false;
    const std::int32_t rank = index_.find(word);
    tokens.push_back(rank == WordIndex::kNone ? kRankedRare : rank + kFirstRanked);
    return true;
  });
  return tokens;
}

}  // namespace pipewright
