#include "datasets/formats/text_tokenizers.h"

#include <algorithm>
#include <set>

#include "datasets/formats/byte_bpe.h"
#include "datasets/formats/text_file.h"
#include "datasets/formats/utf8.h"
#include "datasets/formats/word_counts.h"

namespace pipewright {
namespace {

constexpr const char* kUnknown = "<unk>";
constexpr const char* kEndOfLine = "<eos>";

/// Calls `visit` for each word, ends of lines among them.
template <class Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  for (const std::string_view line : lines_of(text)) {
    for (const std::string_view word : words_of(line)) visit(word);
    visit(kEndOfLine);
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
  std::vector<std::string> known{kUnknown};
  {
    const std::vector<std::string_view> all = characters(training_text);
    const std::set<std::string_view> sorted(all.begin(),
                                            all.end());  // bytes sort as code points do
    known.insert(known.end(), sorted.begin(), sorted.end());
  }
  const auto index = std::make_shared<const WordIndex>(std::move(known));
  return {[index](std::string_view text) {
            std::vector<std::int32_t> tokens;
            tokens.reserve(text.size());
            for (const std::string_view character : characters(text))
              tokens.push_back(number_of(*index, character));
            return tokens;
          },
          index->size()};
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
