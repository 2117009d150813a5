// SPDX-License-Identifier: Apache-2.0
/// Counts of words, and indices from words to numbers, for vocabularies.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pipewright {

/// Hashes strings and views alike, so that a view can look up a string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// Numbers words in the order in which they are first seen, and counts them.
class WordCounts {
 public:
  struct Entry {
    std::string word;
    std::int64_t count = 0;
  };

  void add(std::string_view word, std::int64_t count = 1);
  const std::vector<Entry>& in_order() const { return entries_; }
  /// Entries by descending count, ties in the order in which words were first seen.
  std::vector<Entry> ranked() const;

 private:
  std::vector<Entry> entries_;
  TextMap<std::size_t> places_;
};

/// Maps numbers to words and back.
class WordIndex {
 public:
  static constexpr std::int32_t kNone = -1;

  WordIndex() = default;
  /// Word i has the number i; a repeated word keeps its first number.
  explicit WordIndex(std::vector<std::string> words);

  std::int32_t find(std::string_view word) const;
  const std::string& operator[](std::int32_t number) const;
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }

 private:
  std::vector<std::string> words_;
  TextMap<std::int32_t> numbers_;
};

}  // namespace pipewright
