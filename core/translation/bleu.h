/// BLEU (Papineni et al., 2002) of a corpus with one reference per sentence, as sacreBLEU (Post,
/// 2018) computes it, number for number.
#pragma once

#include <span>
#include <string>

namespace pipewright {

struct BleuOptions {
  /// 13a: that of WMT's mteval-v13a. intl: mteval-v14's, by Unicode's classes. none: at white
  /// space.
  std::string tokenizer = "13a";
  bool lowercase = false;  ///< letter by letter; a final Σ becomes σ, where Python says ς
};

/// What a score must be quoted with: "bleu|case.mixed|tok.13a|smooth.exp".
std::string signature(const BleuOptions& options);

/// The tokens of a line with one space between them. UTF-8; what is not counts as no character.
std::string bleu_tokens(const std::string& line, const BleuOptions& options);

/// 0 to 100: the brevity penalty times the geometric mean of the precisions of 1 to 4 tokens, of
/// which those of 0 are smoothed: the k-th such precision is 100 / (2^k · how many there are).
double corpus_bleu(std::span<const std::string> translations,
                   std::span<const std::string> references, const BleuOptions& options);

}  // namespace pipewright
