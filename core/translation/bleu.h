// SPDX-License-Identifier: Apache-2.0
/// BLEU (Papineni et al., 2002) of a corpus with one reference per sentence. It gives exactly the
/// numbers of sacreBLEU (Post, 2018).
#pragma once

#include <span>
#include <string>

namespace pipewright {

struct BleuOptions {
  /// 13a: the tokenizer of WMT's mteval-v13a. intl: that of mteval-v14, by Unicode classes. none:
  /// tokens are separated by white space.
  std::string tokenizer = "13a";
  bool lowercase = false;  ///< letter by letter: a final Σ becomes σ (ς in Python)
};

/// The tokens of a line in UTF-8, separated by single spaces. Invalid bytes match no character
/// class.
std::string bleu_tokens(const std::string& line, const BleuOptions& options);

/// BLEU from 0 to 100: the brevity penalty times the geometric mean of the precisions of n-grams of
/// 1 to 4 tokens. Precisions of 0 are smoothed: the k-th of them becomes 100 / (2^k · number of
/// n-grams).
double corpus_bleu(std::span<const std::string> translations,
                   std::span<const std::string> references, const BleuOptions& options);

}  // namespace pipewright
