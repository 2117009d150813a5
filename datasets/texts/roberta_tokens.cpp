// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/roberta_tokens.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/parsed.h"
#include "core/base/wording.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

constexpr std::int32_t kMarks = 4;      // number of tokens before those of dict.txt
constexpr std::int32_t kMasks = 1;      // number of tokens behind them
constexpr std::int32_t kNotGiven = -1;  // a token that dict.txt does not list

void append(std::vector<std::int32_t>& out, const std::vector<std::int32_t>& tokens,
            std::size_t count) {
  out.insert(out.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

/// The lengths of a and b after the longer one has been shortened until both fit into `room`.
std::pair<std::size_t, std::size_t> longest_first(std::size_t a, std::size_t b, std::size_t room) {
  while (a + b > room) --(a > b ? a : b);
  return {a, b};
}

}  // namespace

RobertaTokens::RobertaTokens(const std::filesystem::path& folder)
    : bpe_(folder), ids_(static_cast<std::size_t>(bpe_.size()), kNotGiven) {
  const std::filesystem::path path = folder / "dict.txt";
  const std::string text = read_text(path, "fairseq's dictionary of RoBERTa, dict.txt");
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string_view> columns = words_of(lines[i]);
    if (columns.size() != 2)
      throw_bad_line(path, i + 1,
                     concat("has ", counted(columns.size(), "column"),
                            ", but must have 2: a token and its count"));
    const auto token = parsed<std::size_t>(columns[0]);
    if (!token) continue;  // a filler word
    if (*token >= ids_.size())
      throw_bad_line(path, i + 1,
                     concat("names token ", *token, ", encoder.json has ", ids_.size()));
    if (ids_[*token] != kNotGiven) throw_bad_line(path, i + 1, concat("repeats token ", *token));
    ids_[*token] = static_cast<std::int32_t>(i) + kMarks;
  }
  const auto missing = std::ranges::find(ids_, kNotGiven);
  if (missing != ids_.end())
    throw data_error(path, "has no line for token ", missing - ids_.begin());
  size_ = static_cast<std::int64_t>(lines.size()) + kMarks + kMasks;
}

std::vector<std::int32_t> RobertaTokens::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens = bpe_.encode(text);
  for (std::int32_t& token : tokens) token = ids_[static_cast<std::size_t>(token)];
  return tokens;
}

std::vector<std::int32_t> RobertaTokens::single(std::string_view a, std::size_t limit) const {
  const std::vector<std::int32_t> tokens = encode(a);
  std::vector<std::int32_t> out{kBegin};
  append(out, tokens, std::min(tokens.size(), limit - 2));
  out.push_back(kEnd);
  return out;
}

std::vector<std::int32_t> RobertaTokens::pair(std::string_view a, std::string_view b,
                                              std::size_t limit) const {
  const std::vector<std::int32_t> first = encode(a), second = encode(b);
  const auto [firsts, seconds] = longest_first(first.size(), second.size(), limit - 4);
  std::vector<std::int32_t> out{kBegin};
  append(out, first, firsts);
  out.insert(out.end(), {kEnd, kEnd});
  append(out, second, seconds);
  out.push_back(kEnd);
  return out;
}

}  // namespace pipewright
