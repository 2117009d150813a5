/// Ways to make tokens of running text; vocabularies are made of the training text alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace pipewright {

class ByteBpe;

/// `encode` takes valid UTF-8 and may be called from several threads at once.
struct TextTokenizer {
  std::function<std::vector<std::int32_t>(std::string_view text)> encode;
  std::int64_t vocabulary = 0;  ///< tokens lie in [0, vocabulary)
};

/// Token = byte.
TextTokenizer byte_tokenizer();

/// 0 for characters that the training text does not have, then its characters by their code points.
TextTokenizer character_tokenizer(std::string_view training_text);

/// Words between white space, and "<eos>" at the end of each line: "<unk>" 0, for words that the
/// training text does not have or the vocabulary has no room for, then the most frequent first, of
/// equally frequent ones the first to occur. At most `most` tokens in all; 0 = no limit.
TextTokenizer word_tokenizer(std::string_view training_text, std::int64_t most);

TextTokenizer byte_bpe_tokenizer(std::shared_ptr<const ByteBpe> bpe);

}  // namespace pipewright
