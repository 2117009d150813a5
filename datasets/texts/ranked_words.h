// SPDX-License-Identifier: Apache-2.0
/// Texts as tokens that are the ranks of their words, as in the IMDB data set of Keras: 0 is
/// padding, 1 the start, 2 a word that is too rare or unknown, and 3 + r the word of rank r ≥ 1.
/// Words are those of Keras' Tokenizer: lower case, with all punctuation but the apostrophe
/// replaced by blanks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datasets/texts/word_counts.h"

namespace pipewright {

inline constexpr std::int32_t kRankedPadding = 0, kRankedStart = 1, kRankedRare = 2,
                              kFirstRanked = 4;

/// Adds the words of a text, which is in lower case.
void count_words(std::string_view text, WordCounts& counts);

class RankedWords {
 public:
  RankedWords() = default;
  /// The most frequent words, as many as a vocabulary of that size has beside the marks.
  RankedWords(const WordCounts& counts, std::int64_t vocabulary);

  /// The start and the first words of a text in lower case, at most so many tokens together.
  std::vector<std::int32_t> tokens(std::string_view text, std::int64_t most) const;

 private:
  WordIndex index_;
};

}  // namespace pipewright
