// SPDX-License-Identifier: Apache-2.0
/// Tokenizers of running text. Vocabularies come from the training text only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace pipewright {

class ByteBpe;

/// A tokenizer. `encode` takes valid UTF-8; several threads may call it at once.
struct TextTokenizer {
  std::function<std::vector<std::int32_t>(std::string_view text)> encode;
  std::int64_t vocabulary = 0;  ///< tokens lie in [0, vocabulary)
};

/// Makes one token per byte.
TextTokenizer byte_tokenizer();

/// Makes one token per character: 0 for characters that are not in the training text, then those of
/// the training text, sorted by code point.
TextTokenizer character_tokenizer(std::string_view training_text);

/// Makes one token per word between white space, and "<eos>" at the end of each line. Token 0 is
/// "<unk>", for words that are not in the vocabulary; the others are sorted by frequency, ties by
/// first occurrence. `most` limits the number of tokens, "<unk>" included; 0: no limit.
TextTokenizer word_tokenizer(std::string_view training_text, std::int64_t most);

/// Encodes with GPT-2's byte-level BPE.
TextTokenizer byte_bpe_tokenizer(std::shared_ptr<const ByteBpe> bpe);

}  // namespace pipewright
