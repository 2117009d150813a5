// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/word_counts.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {

void WordCounts::add(std::string_view word, std::int64_t count) {
  auto found = places_.find(word);
  if (found == places_.end()) {
    found = places_.emplace(word, entries_.size()).first;
    entries_.push_back({std::string(word), 0});
  }
  entries_[found->second].count += count;
}

std::vector<WordCounts::Entry> WordCounts::ranked() const {
  std::vector<Entry> entries = entries_;
  std::ranges::stable_sort(entries, std::greater(), &Entry::count);
  return entries;
}

WordIndex::WordIndex(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_)
    numbers_.emplace(word, static_cast<std::int32_t>(&word - words_.data()));
}

std::int32_t WordIndex::find(std::string_view word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? kNone : found->second;
}

const std::string& WordIndex::operator[](std::int32_t number) const {
  PIPEWRIGHT_CHECK(number >= 0 && number < size(), "word ", number);
  return words_[static_cast<std::size_t>(number)];
}

}  // namespace pipewright
