// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/text_tokenizers.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "datasets/texts/byte_bpe.h"
#include "datasets/texts/text_file.h"
#include "datasets/texts/word_counts.h"

namespace pipewright {
namespace {

constexpr const char* kUnknown = "<unk>";
constexpr const char* kEndOfLine = "<eos>";
constexpr std::size_t kCodePoints = 0x110000;  // of Unicode

/// Calls `visit` for each word and each end of a line. Words and lines are not collected, because a
/// text of blanks or line ends would then take many times its size.
template <class Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    for (std::size_t from = line.find_first_not_of(kAsciiSpace); from < line.size();) {
      const std::size_t to = std::min(line.find_first_of(kAsciiSpace, from), line.size());
      visit(line.substr(from, to - from));
      from = line.find_first_not_of(kAsciiSpace, to);
    }
    visit(kEndOfLine);
    at = end + 1;
  }
}

/// Calls `visit` with the code point of each character.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const Character one = first_character(text);
    visit(static_cast<std::size_t>(one.code));
    text.remove_prefix(one.length);
  }
}

std::int32_t number_of(const WordIndex& index, std::string_view word) {
  return std::max(index.find(word), 0);  // "<unk>" is 0
}

}  // namespace

TextTokenizer byte_tokenizer() {
  return {[](std::string_view text) {
            std::vector<std::int32_t> tokens;
            tokens.reserve(text.size());
            for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
            return tokens;
          },
          256};
}

TextTokenizer character_tokenizer(std::string_view training_text) {
  std::vector<std::int32_t> numbers(kCodePoints);
  for_each_character(training_text, [&](std::size_t code) { numbers[code] = 1; });
  std::int32_t known = 0;  // 0 is "<unk>"
  for (std::int32_t& number : numbers)
    if (number != 0) number = ++known;
  return {[numbers = std::make_shared<const std::vector<std::int32_t>>(std::move(numbers))](
              std::string_view text) {
            std::vector<std::int32_t> tokens;
            tokens.reserve(text.size());
            for_each_character(text, [&](std::size_t code) { tokens.push_back((*numbers)[code]); });
            return tokens;
          },
          known + 1};
}

TextTokenizer word_tokenizer(std::string_view training_text, std::int64_t most) {
  WordCounts counts;
  for_each_word(training_text, [&](std::string_view word) { counts.add(word); });
  std::vector<std::string> known{kUnknown};
  for (const WordCounts::Entry& entry : counts.ranked()) {
    if (most > 0 && static_cast<std::int64_t>(known.size()) == most) break;
    if (entry.word != kUnknown) known.push_back(entry.word);
  }
  const auto index = std::make_shared<const WordIndex>(std::move(known));
  return {[index](std::string_view text) {
            std::vector<std::int32_t> tokens;
            for_each_word(
                text, [&](std::string_view word) { tokens.push_back(number_of(*index, word)); });
            return tokens;
          },
          index->size()};
}

TextTokenizer byte_bpe_tokenizer(std::shared_ptr<const ByteBpe> bpe) {
  const std::int64_t size = bpe->size();
  return {[bpe = std::move(bpe)](std::string_view text) { return bpe->encode(text); }, size};
}

}  // namespace pipewright
