// SPDX-License-Identifier: Apache-2.0
#include "datasets/synthetic_tokens.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr double kSurprises = 1.0 / 8;

/// The first token that is no mark, or 0 if the vocabulary has no room for other tokens.
std::int64_t first_word(std::int64_t vocabulary) {
  return vocabulary > kMarkTokens ? kMarkTokens : 0;
}

std::vector<std::int64_t> permutation(const TokenRequest& r) {
  const std::int64_t first = first_word(r.vocabulary);
  std::vector<std::int64_t> next(static_cast<std::size_t>(r.vocabulary));
  std::iota(next.begin(), next.end(), 0);
  const RandomStream stream(r.seed, "synthetic.teacher", 3);
  for (auto i = static_cast<std::uint64_t>(r.vocabulary - first); i > 1; --i)
    std::swap(next[static_cast<std::size_t>(first) + i - 1],
              next[static_cast<std::size_t>(first) + stream.below(i, i)]);
  return next;
}

class Words {
 public:
  Words(const TokenRequest& r)
      : stream_(r.seed, "synthetic.inputs", r.split),
        first_(first_word(r.vocabulary)),
        words_(static_cast<std::uint64_t>(r.vocabulary - first_)) {}
  std::int64_t operator[](std::size_t i) const {
    return first_ + static_cast<std::int64_t>(stream_.below(i, words_));
  }

 private:
  RandomStream stream_;
  std::int64_t first_;
  std::uint64_t words_;
};

void classify(const TokenRequest& r, TokenSamples& s) {
  const RandomStream scores(r.seed, "synthetic.teacher", 2);
  const auto classes = static_cast<std::size_t>(r.classes);
  std::vector<double> sums(classes);
  for (auto x = s.x.begin(); x != s.x.end(); x += r.tokens) {
    std::ranges::fill(sums, 0);
    for (auto token = x; token != x + r.tokens; ++token)
      for (std::size_t c = 0; c < classes; ++c)
        sums[c] += scores.normal(static_cast<std::size_t>(*token) * classes + c);
    s.y.push_back(std::ranges::max_element(sums) - sums.begin());
  }
}

/// Sets y to the tokens of x shifted by one position.
void go_on(const TokenRequest& r, TokenSamples& s) {
  const std::vector<std::int64_t> next = permutation(r);
  const RandomStream surprises(r.seed, "synthetic.noise", r.split, 2);
  const Words words(r);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const bool begins = i % static_cast<std::size_t>(r.tokens) == 0;
    if (!begins) s.x[i] = s.y.back();
    s.y.push_back(surprises.uniform(i) < kSurprises ? words[s.x.size() + i]
                                                    : next[static_cast<std::size_t>(s.x[i])]);
  }
}

void translate(const TokenRequest& r, TokenSamples& s) {
  const std::vector<std::int64_t> word = permutation(r);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i) % r.tokens;
    s.so_far.push_back(position == 0 ? std::min(kStartToken, r.vocabulary - 1) : s.y.back());
    s.y.push_back(position + 1 == r.tokens ? std::min(kEndToken, r.vocabulary - 1)
                                           : word[static_cast<std::size_t>(s.x[i])]);
  }
}

}  // namespace

TokenSamples synthetic_tokens(const TokenRequest& r) {
  TokenSamples s{.tokens = r.tokens, .targets = r.task == Task::Classify ? 1 : r.tokens};
  const Words words(r);
  s.x.resize(static_cast<std::size_t>(r.count * r.tokens));
  for (std::size_t i = 0; i < s.x.size(); ++i) s.x[i] = words[i];
  switch (r.task) {
    case Task::Classify: classify(r, s); break;
    case Task::Continue: go_on(r, s); break;
    case Task::Translate: translate(r, s); break;
    case Task::Regress:
    case Task::Label:
    case Task::Minimize: PIPEWRIGHT_CHECK(false, "only tokens are targets");
  }
  return s;
}

}  // namespace pipewright
