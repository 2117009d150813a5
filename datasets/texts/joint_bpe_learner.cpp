// SPDX-License-Identifier: Apache-2.0
/// Learns merges incrementally: each merge updates the counts of pairs in those words only that
/// contain the merged pair.
#include <algorithm>
#include <queue>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "datasets/texts/joint_bpe.h"

namespace pipewright {
namespace {

constexpr std::int64_t kLeastCount = 2;

struct Word {
  std::vector<std::int32_t> symbols;
  std::int64_t count;
};

struct Pair {
  std::int32_t first, second;
  std::int64_t count = 0;           // occurrences in the text
  std::vector<std::int32_t> words;  // words that have or had the pair; may repeat
};

class Learner {
 public:
  explicit Learner(const std::vector<WordCounts::Entry>& words) : queue_(After{this}) {
    for (const WordCounts::Entry& entry : words) {
      Word word{{}, entry.count};
      const std::vector<std::string_view> letters = characters(entry.word);
      for (std::size_t i = 0; i < letters.size(); ++i)
        word.symbols.push_back(
            symbol(std::string(letters[i]) + (i + 1 == letters.size() ? "</w>" : "")));
      words_.push_back(std::move(word));
    }
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::vector<std::int32_t>& s = words_[w].symbols;
      for (std::size_t i = 0; i + 1 < s.size(); ++i) {
        Pair& pair = pairs_[place(s[i], s[i + 1])];
        pair.count += words_[w].count;
        pair.words.push_back(static_cast<std::int32_t>(w));
      }
    }
    for (std::size_t p = 0; p < pairs_.size(); ++p) queue_.push({pairs_[p].count, p});
  }

  /// Merges the most frequent pair wherever it occurs. Returns false if no pair occurs often
  /// enough.
  bool merge_next(SymbolPair& merged) {
    while (!queue_.empty() && queue_.top().count >= kLeastCount) {
      const Candidate top = queue_.top();
      queue_.pop();
      const Pair& pair = pairs_[top.pair];
      if (pair.count == top.count) {
        merged = {texts_[index(pair.first)], texts_[index(pair.second)]};
        merge(top.pair);
        return true;
      }
      // The candidate's count is stale. If the pair has become rarer, it is queued again with its
      // count; if more frequent, the queue already has another candidate for it.
      if (pair.count < top.count) queue_.push({pair.count, top.pair});
    }
    return false;
  }

 private:
  struct Candidate {
    std::int64_t count;  // of the pair when it was queued
    std::size_t pair;
  };
  struct After {
    const Learner* learner;
    bool operator()(const Candidate& a, const Candidate& b) const {
      return a.count != b.count ? a.count < b.count : learner->is_before(a.pair, b.pair);
    }
  };

  static std::size_t index(std::int32_t symbol) { return static_cast<std::size_t>(symbol); }

  bool is_before(std::size_t a, std::size_t b) const {
    const Pair &left = pairs_[a], &right = pairs_[b];
    if (left.first != right.first) return texts_[index(left.first)] < texts_[index(right.first)];
    return texts_[index(left.second)] < texts_[index(right.second)];
  }

  std::int32_t symbol(const std::string& text) {
    const auto [found, is_new] = symbols_.emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return found->second;
  }

  std::size_t place(std::int32_t first, std::int32_t second) {
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(first)} << 32 | static_cast<std::uint32_t>(second);
    const auto [found, is_new] = places_.emplace(key, pairs_.size());
    if (is_new) pairs_.push_back({first, second});
    return found->second;
  }

  void merge(std::size_t which) {
    const std::int32_t first = pairs_[which].first, second = pairs_[which].second;
    const std::int32_t whole = symbol(texts_[index(first)] + texts_[index(second)]);
    changed_.clear();
    for (const std::int32_t w : std::vector<std::int32_t>(std::move(pairs_[which].words)))
      merge_in(w, first, second, whole);
    for (const std::size_t pair : changed_) queue_.push({pairs_[pair].count, pair});
    pairs_[which].words = {};
  }

  void merge_in(std::int32_t w, std::int32_t first, std::int32_t second, std::int32_t whole) {
    Word& word = words_[index(w)];
    std::vector<std::int32_t>& s = word.symbols;
    std::vector<std::int32_t> merged;
    for (std::size_t i = 0; i < s.size(); ++i) {
      const bool merges = i + 1 < s.size() && s[i] == first && s[i + 1] == second;
      merged.push_back(merges ? whole : s[i]);
      if (merges) ++i;
    }
    if (merged.size() == s.size()) return;
    for (std::size_t i = 0; i + 1 < s.size(); ++i)
      pairs_[place(s[i], s[i + 1])].count -= word.count;
    s = std::move(merged);
    for (std::size_t i = 0; i + 1 < s.size(); ++i) {
      const std::size_t at = place(s[i], s[i + 1]);
      pairs_[at].count += word.count;
      if (s[i] != whole && s[i + 1] != whole) continue;  // not a new pair
      pairs_[at].words.push_back(w);
      changed_.push_back(at);
    }
  }

  std::vector<Word> words_;
  std::vector<std::string> texts_;  // text of each symbol
  TextMap<std::int32_t> symbols_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // both symbols → index in pairs_
  std::priority_queue<Candidate, std::vector<Candidate>, After> queue_;
  std::vector<std::size_t> changed_;
};

}  // namespace

std::vector<SymbolPair> learn_merges(const std::vector<WordCounts::Entry>& words,
                                     std::int64_t most) {
  Learner learner(words);
  std::vector<SymbolPair> merges;
  for (SymbolPair merged;
       static_cast<std::int64_t>(merges.size()) < most && learner.merge_next(merged);)
    merges.push_back(merged);
  return merges;
}

}  // namespace pipewright
