/// Byte-pair encoding of words (Sennrich, Haddow and Birch, "Neural Machine Translation of Rare
/// Words with Subword Units", 2016), the same as that of the program subword-nmt: words are merged
/// from characters, the last of which carries a mark, and parts that are not a word's last end in
/// "@@". Learnt from the texts of both languages it is called joint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/texts/word_counts.h"

namespace pipewright {

/// One merge: the texts of its two symbols; "</w>" stands behind the last character of a word.
using SymbolPair = std::pair<std::string, std::string>;

/// Up to `most` merges learnt from words and their counts: at each step that pair of neighbouring
/// symbols which is the most frequent, of equally frequent ones the last in the order of code
/// points; none that occurs only once. Words are valid UTF-8, not empty, each there once.
std::vector<SymbolPair> learn_merges(const std::vector<WordCounts::Entry>& words,
                                     std::int64_t most);

/// Merges of a file of subword-nmt: "#version: 0.2", then a merge a line. Throws Error{Data} naming
/// file and line.
std::vector<SymbolPair> read_merges(const std::filesystem::path& path);

class JointBpe {
 public:
  /// Earlier merges go first.
  explicit JointBpe(const std::vector<SymbolPair>& merges);
  /// The parts of one word of valid UTF-8, not empty: "lo@@", "w@@", "er".
  std::vector<std::string> parts(std::string_view word) const;

 private:
  std::int32_t rank(const std::string& first, const std::string& second) const;

  TextMap<std::int32_t> ranks_;  // by both symbols with a blank between
};

}  // namespace pipewright
