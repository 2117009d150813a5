// SPDX-License-Identifier: Apache-2.0
/// Byte-pair encoding of words (Sennrich, Haddow and Birch, "Neural Machine Translation of Rare
/// Words with Subword Units", 2016), equal to that of the program subword-nmt. Words are merged
/// from characters, the last of which carries a mark; all parts of a word but the last end in "@@".
/// The encoding is called joint if it is learnt from the texts of both languages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/texts/word_counts.h"

namespace pipewright {

/// A merge: the texts of its two symbols. The last symbol of a word ends in "</w>".
using SymbolPair = std::pair<std::string, std::string>;

/// Learns up to `most` merges from words and their counts. Each step merges the most frequent pair
/// of adjacent symbols; ties go to the last pair in the order of code points. Pairs that occur once
/// are not merged. Words must be distinct, not empty and valid UTF-8.
std::vector<SymbolPair> learn_merges(const std::vector<WordCounts::Entry>& words,
                                     std::int64_t most);

/// Reads the merges of a file of subword-nmt: a line "#version: 0.2", then one merge per line.
/// Throws Error{Data} with file and line.
std::vector<SymbolPair> read_merges(const std::filesystem::path& path);

class JointBpe {
 public:
  /// Earlier merges are applied first.
  explicit JointBpe(const std::vector<SymbolPair>& merges);
  /// Splits one word (valid UTF-8, not empty) into parts such as "lo@@", "w@@", "er".
  std::vector<std::string> parts(std::string_view word) const;

 private:
  std::int32_t rank(const std::string& first, const std::string& second) const;

  TextMap<std::int32_t> ranks_;  // "first second" → rank
};

}  // namespace pipewright
