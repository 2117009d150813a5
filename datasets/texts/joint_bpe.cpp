// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/joint_bpe.h"

#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "datasets/texts/pair_merging.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

constexpr std::string_view kEndOfWord = "</w>";
constexpr std::string_view kGoesOn = "@@";

}  // namespace

std::vector<SymbolPair> read_merges(const std::filesystem::path& path) {
  const std::string text = read_text(path, "a file of merges that subword-nmt has learnt");
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines[0] != "#version: 0.2")
    throw_bad_line(path, 1, "must be '#version: 0.2', as subword-nmt writes since 2017");
  std::vector<SymbolPair> merges;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> symbols = split(lines[i], ' ');
    if (symbols.size() != 2 || symbols[0].empty() || symbols[1].empty())
      throw_bad_line(path, i + 1, "must have two symbols with a blank between");
    merges.emplace_back(symbols[0], symbols[1]);
  }
  return merges;
}

JointBpe::JointBpe(const std::vector<SymbolPair>& merges) {
  for (const auto& [first, second] : merges)
    ranks_.emplace(first + " " + second, static_cast<std::int32_t>(ranks_.size()));
}

std::int32_t JointBpe::rank(const std::string& first, const std::string& second) const {
  const auto found = ranks_.find(first + " " + second);
  return found == ranks_.end() ? kNoMerge : found->second;
}

std::vector<std::string> JointBpe::parts(std::string_view word) const {
  std::vector<std::string> symbols;
  for (const std::string_view character : characters(word)) symbols.emplace_back(character);
  symbols.back() += kEndOfWord;
  symbols = merge_pairs(
      std::move(symbols),
      [this](const std::string& first, const std::string& second) { return rank(first, second); },
      std::plus<std::string>());
  symbols.back().resize(symbols.back().size() - kEndOfWord.size());
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) symbols[i] += kGoesOn;
  return symbols;
}

}  // namespace pipewright
