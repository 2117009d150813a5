// SPDX-License-Identifier: Apache-2.0
/// Tokenises texts and pairs of texts for RoBERTa (Liu et al., "RoBERTa: A Robustly Optimized BERT
/// Pretraining Approach", 2019): byte-level BPE with marks around it, truncated to a number of
/// tokens.
///
/// Tokens are <s> 0, <pad> 1, </s> 2, <unk> 3, GPT-2's tokens in the order of fairseq's dict.txt,
/// then <mask>: 50,265 with the published files.
#pragma once

#include <string_view>

#include "datasets/texts/byte_bpe.h"

namespace pipewright {

class RobertaTokens {
 public:
  static constexpr std::int32_t kBegin = 0, kPadding = 1, kEnd = 2;

  /// Reads the two files of ByteBpe and `dict.txt` (a GPT-2 token and its count per line). Throws
  /// Error{Data} at a file that is missing or malformed, also if a GPT-2 token has no line or two.
  explicit RobertaTokens(const std::filesystem::path& folder);

  /// The text's tokens without marks.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Tokens <s> A </s>; A is truncated at its end so that there are at most `limit` ≥ 2 tokens.
  std::vector<std::int32_t> single(std::string_view a, std::size_t limit) const;
  /// Tokens <s> A </s></s> B </s>, at most `limit` ≥ 4: until all fit, the longer of A and B loses
  /// its last token; B if both have the same length.
  std::vector<std::int32_t> pair(std::string_view a, std::string_view b, std::size_t limit) const;
  std::int64_t size() const { return size_; }

 private:
  ByteBpe bpe_;
  std::vector<std::int32_t> ids_;  // our token of each GPT-2 token
  std::int64_t size_ = 0;
};

}  // namespace pipewright
