/// Texts and pairs of texts as RoBERTa reads them (Liu et al., "RoBERTa: A Robustly Optimized BERT
/// Pretraining Approach", 2019): byte-level BPE, marks around, cut to a number of tokens.
///
/// Tokens: <s> 0, <pad> 1, </s> 2, <unk> 3, then GPT-2's tokens in the order of fairseq's dict.txt,
/// then <mask>: 50,265 with the published files.
#pragma once

#include <string_view>

#include "datasets/texts/byte_bpe.h"

namespace pipewright {

class RobertaTokens {
 public:
  static constexpr std::int32_t kBegin = 0, kPadding = 1, kEnd = 2;

  /// Reads the two files of ByteBpe and `dict.txt` (a GPT-2 token and its count a line). Throws
  /// Error{Data} at the file, also where a token of GPT-2 has no line or two.
  explicit RobertaTokens(const std::filesystem::path& folder);

  /// The text's tokens alone.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// <s> A </s>, at most `limit` (≥ 2) tokens: A loses its last ones.
  std::vector<std::int32_t> single(std::string_view a, std::size_t limit) const;
  /// <s> A </s></s> B </s>, at most `limit` (≥ 4) tokens: the longer of the two loses its last one,
  /// B when they are of equal length, until all fit.
  std::vector<std::int32_t> pair(std::string_view a, std::string_view b, std::size_t limit) const;
  std::int64_t size() const { return size_; }

 private:
  ByteBpe bpe_;
  std::vector<std::int32_t> ids_;  // by GPT-2's token
  std::int64_t size_ = 0;
};

}  // namespace pipewright
