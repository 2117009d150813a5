// SPDX-License-Identifier: Apache-2.0
#include "core/translation/bleu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/tensor_files/pattern.h"

namespace pipewright {
namespace {

constexpr std::size_t kOrders = 4;

/// Replaces every match of a pattern.
class Substitution {
 public:
  Substitution(const std::string& pattern, std::string replacement)
      : pattern_(pattern), replacement_(std::move(replacement)) {}
  std::string operator()(const std::string& text) const {
    return pattern_.replaced(text, replacement_);
  }

 private:
  Pattern pattern_;
  std::string replacement_;
};

/// Pattern of the characters that Python calls white space.
const std::string kPythonSpace =
    R"([\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+)";

/// Replaces each run of white space by one space.
std::string single_spaces(const std::string& text) {
  static const Substitution spaces(kPythonSpace, " ");
  std::string out = spaces(text);
  if (out.ends_with(' ')) out.pop_back();
  if (out.starts_with(' ')) out.erase(0, 1);
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string all_of(std::span<const Substitution> substitutions, std::string text) {
  for (const Substitution& substitution : substitutions) text = substitution(text);
  return text;
}

std::string tokens_13a(std::string text) {
  static const std::array<Substitution, 4> rules{
      Substitution(R"(([\{-~\[-` -&\(-+:-@/]))", " $1 "),  // punctuation except ' , - .
      Substitution(R"(([^0-9])([.,]))", "$1 $2 "), Substitution(R"(([.,])([^0-9]))", " $1 $2"),
      Substitution(R"(([0-9])(-))", "$1 $2 ")};
  constexpr std::array<std::array<std::string_view, 2>, 7> marks{{{"<skipped>", ""},
                                                                  {"-\n", ""},
                                                                  {"\n", " "},
                                                                  {"&quot;", "\""},
                                                                  {"&amp;", "&"},
                                                                  {"&lt;", "<"},
                                                                  {"&gt;", ">"}}};
  for (const auto& [what, with] : marks) text = replaced(std::move(text), what, with);
  return all_of(rules, " " + text + " ");
}

std::string tokens_intl(const std::string& text) {
  static const std::array<Substitution, 3> rules{Substitution(R"((\P{N})(\p{P}))", "$1 $2 "),
                                                 Substitution(R"((\p{P})(\P{N}))", " $1 $2"),
                                                 Substitution(R"((\p{S}))", " $1 ")};
  return all_of(rules, text);
}

std::string lower(const std::string& text) {
  static const Substitution letters(R"(\p{L}+)", R"(\L$0)");
  return letters(text);
}

std::string without_trailing_space(const std::string& text) {
  static const Substitution end(kPythonSpace + "\\z", "");
  return end(text);
}

/// How often each n-gram of up to four tokens occurs, and the number of n-grams of each order.
struct Counts {
  explicit Counts(const std::string& tokens) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t end = std::min(tokens.find(' ', at), tokens.size());
      words.emplace_back(tokens.data() + at, end - at);
      at = end + 1;
    }
    for (std::size_t first = 0; first < words.size(); ++first)
      for (std::size_t n = 0; n < kOrders && first + n < words.size(); ++n) {
        const char* const begin = words[first].data();
        const char* const end = words[first + n].data() + words[first + n].size();
        ++of[n][std::string(begin, end)];
        ++total[n];
      }
  }
  std::array<std::unordered_map<std::string, std::int64_t>, kOrders> of;
  std::array<std::int64_t, kOrders> total{};
};

double score(const std::array<std::int64_t, kOrders>& right,
             const std::array<std::int64_t, kOrders>& total, std::int64_t reference_length) {
  if (std::ranges::all_of(right, [](std::int64_t count) { return count == 0; })) return 0;
  double sum = 0, smoothing = 1;
  for (std::size_t n = 0; n < kOrders; ++n) {
    if (total[n] == 0) return 0;
    if (right[n] == 0) smoothing *= 2;
    const double hits = right[n] == 0 ? 1 / smoothing : static_cast<double>(right[n]);
    sum += std::log(100 * hits / static_cast<double>(total[n]));
  }
  const double ratio = static_cast<double>(reference_length) / static_cast<double>(total[0]);
  return std::min(1.0, std::exp(1 - ratio)) * std::exp(sum / kOrders);
}

}  // namespace

std::string bleu_tokens(const std::string& line, const BleuOptions& options) {
  const std::string text = without_trailing_space(options.lowercase ? lower(line) : line);
  if (options.tokenizer == "13a") return single_spaces(tokens_13a(text));
  if (options.tokenizer == "intl") return single_spaces(tokens_intl(text));
  PIPEWRIGHT_CHECK(options.tokenizer == "none", "tokenizer '", options.tokenizer, "'");
  return single_spaces(text);
}

double corpus_bleu(std::span<const std::string> translations,
                   std::span<const std::string> references, const BleuOptions& options) {
  PIPEWRIGHT_CHECK(translations.size() == references.size(), translations.size(),
                   " translations of ", references.size(), " sentences");
  std::array<std::int64_t, kOrders> right{}, total{};
  std::int64_t reference_length = 0;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    const Counts said(bleu_tokens(translations[i], options));
    const Counts meant(bleu_tokens(references[i], options));
    reference_length += meant.total[0];
    for (std::size_t n = 0; n < kOrders; ++n) {
      total[n] += said.total[n];
      for (const auto& [run, count] : said.of[n])
        if (const auto found = meant.of[n].find(run); found != meant.of[n].end())
          right[n] += std::min(count, found->second);
    }
  }
  return score(right, total, reference_length);
}

}  // namespace pipewright
