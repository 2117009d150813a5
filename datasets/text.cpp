// SPDX-License-Identifier: Apache-2.0
/// Running text to be continued: sample i is tokens [i·T, i·T + T) of a file, and its targets are
/// the tokens shifted by one position. Tokens behind the last complete sample are not used.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include "core/base/error_at.h"
#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "core/fetch/sources.h"
#include "core/nn/dataset.h"
#include "datasets/texts/byte_bpe.h"
#include "datasets/texts/text_file.h"
#include "datasets/texts/word_counts.h"

namespace pipewright {
namespace {

/// Known names of text files; an empty test name means that the training file holds both texts.
struct KnownNames {
  const char* train;
  const char* test;
};
constexpr std::array<KnownNames, 3> kKnownNames{
    {{"wiki.train.tokens", "wiki.test.tokens"}, {"train.txt", "test.txt"}, {"input.txt", ""}}};
constexpr const char* kTextOrigin =
    "the user's own text, or that of a public set such as WikiText-2 (wiki.train.tokens; Merity et "
    "al., 2016) or Tiny Shakespeare (input.txt; Karpathy's char-rnn); set dataset.root or "
    "dataset.train";

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

/// A tokenizer. `encode` takes valid UTF-8; several threads may call it at once.
struct TextTokenizer {
  std::function<std::vector<std::int32_t>(std::string_view text)> encode;
  std::int64_t vocabulary = 0;  ///< tokens lie in [0, vocabulary)
};

/// Makes one token per byte.
TextTokenizer byte_tokenizer() {
  return {[](std::string_view text) {
            std::vector<std::int32_t> tokens;
            tokens.reserve(text.size());
            for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
            return tokens;
          },
          256};
}

/// Makes one token per character: 0 for characters that are not in the training text, then those of
/// the training text, sorted by code point.
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

/// Makes one token per word between white space, and "<eos>" at the end of each line. Token 0 is
/// "<unk>", for words that are not in the vocabulary; the others are sorted by frequency, ties by
/// first occurrence. `most` limits the number of tokens, "<unk>" included; 0: no limit.
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

/// Encodes with GPT-2's byte-level BPE.
TextTokenizer byte_bpe_tokenizer(std::shared_ptr<const ByteBpe> bpe) {
  const std::int64_t size = bpe->size();
  return {[bpe = std::move(bpe)](std::string_view text) { return bpe->encode(text); }, size};
}

class Text final : public Dataset {
 public:
  explicit Text(Options& options)
      : root_(options.path("root", "~/data/text",
                           "Folder of a training and a test text by one of these names: "
                           "wiki.train.tokens and wiki.test.tokens, train.txt and test.txt, or "
                           "input.txt for both; plain or gzipped (.gz). Not used if `train` is "
                           "given.")),
        train_(options.path("train", "", "The training text, UTF-8, plain or gzipped (.gz).")),
        test_(options.path(
            "test", "", "The test text; without one, the end of the training text serves as one.")),
        share_(options.number("test_share", 0.1,
                              "Where there is no test text: the share of the training text, at its "
                              "end, that is the test text.",
                              Range{0.001, 0.9})),
        tokenizer_(options.choice(
            "tokenizer", {"bytes", "characters", "words", "bpe"}, "characters",
            "What one token is. With characters and words, those that the training text lacks are "
            "one token; bpe is GPT-2's byte-level BPE.")),
        length_(options.integer("tokens", 128, "Tokens of each sample.", Range{1, 1 << 20})),
        words_(options.integer("words", 0,
                               "With tokenizer: words, the size of the vocabulary: rarer words "
                               "are one token; 0 = no limit.",
                               Range{0, 1 << 30})),
        bpe_(options.path("bpe", "~/data/gpt2_bpe",
                          "With tokenizer: bpe, the folder of encoder.json and vocab.bpe.")) {
    if (options.given("test") && !options.given("train"))
      options.problem("test", "needs `train` too: the training text");
  }

  void open(const DatasetRequest&) override {
    const auto [train, test] = train_.empty() ? known_files() : std::pair(train_, test_);
    std::string text = read_text(train, kTextOrigin);
    const std::string end = test.empty() ? text.substr(cut(text)) : read_text(test, kTextOrigin);
    if (test.empty()) text.resize(text.size() - end.size());
    const TextTokenizer tokenizer = tokenizer_for(text);
    vocabulary_ = tokenizer.vocabulary;
    tokens_[0] = checked(tokenizer.encode(text), train, "training");
    tokens_[1] = checked(tokenizer.encode(end), test.empty() ? train : test, "test");
  }

  /// The vocabulary is known where the files are there that it comes from.
  SampleForm form(Task /*targets*/) const override {
    SampleForm form{.shape = sample_shape()};
    std::string text;
    if (tokenizer_ == "characters" || tokenizer_ == "words") {
      const auto [train, test] = train_.empty() ? files_there() : std::pair(train_, test_);
      if (train.empty() || !text_is_there(train)) return form;
      text = read_text(train, kTextOrigin);
      if (test.empty()) text.resize(cut(text));
    } else if (tokenizer_ == "bpe" && !std::filesystem::exists(bpe_)) {
      return form;
    }
    form.classes = form.vocabulary = tokenizer_for(text).vocabulary;
    return form;
  }

  std::int64_t size(Split split) const override {
    return (static_cast<std::int64_t>(tokens(split).size()) - 1) / length_;
  }
  std::vector<std::int64_t> sample_shape() const override { return {length_}; }
  std::int64_t classes() const override { return vocabulary_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Task task() const override { return Task::Continue; }
  std::vector<std::string> metrics() const override { return {"perplexity"}; }
  std::int64_t length(Split, std::int64_t) const override { return length_; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const auto count = static_cast<std::int64_t>(indices.size());
    Batch batch{{at::empty({count, length_}, at::kLong)}, at::empty({count, length_}, at::kLong)};
    auto* x = batch.x[0].mutable_data_ptr<std::int64_t>();
    auto* y = batch.y.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t index : indices) {
      PIPEWRIGHT_CHECK(index >= 0 && index < size(split), "sample ", index);
      const auto first = tokens(split).begin() + index * length_;
      x = std::copy_n(first, length_, x);
      y = std::copy_n(first + 1, length_, y);
    }
    return batch;
  }

 private:
  const std::vector<std::int32_t>& tokens(Split split) const {
    return tokens_[static_cast<std::size_t>(split)];
  }

  using Files = std::pair<std::filesystem::path, std::filesystem::path>;  // training, test

  /// The first known files in the folder; empty paths if there are none.
  Files files_there() const {
    for (const auto& [train, test] : kKnownNames)
      if (text_is_there(root_ / train))
        return {root_ / train, *test == '\0' ? std::filesystem::path() : root_ / test};
    return {};
  }

  Files known_files() const {
    if (Files files = files_there(); !files.first.empty()) return files;
    throw data_error(root_,
                     "holds none of wiki.train.tokens, train.txt and input.txt, plain or gzipped "
                     "(.gz). It is ",
                     std::string(kTextOrigin), fetch_advice("text"));
  }

  /// The byte at which the test text begins; it is the start of a character or, if words are the
  /// tokens, of a word.
  std::size_t cut(std::string_view text) const {
    const auto place =
        static_cast<std::size_t>(std::floor(static_cast<double>(text.size()) * (1 - share_)));
    if (tokenizer_ != "words") return next_character(text, place);
    return std::min(text.find_first_of(" \t\n", place), text.size() - 1) + 1;
  }

  TextTokenizer tokenizer_for(std::string_view training_text) const {
    if (tokenizer_ == "bytes") return byte_tokenizer();
    if (tokenizer_ == "characters") return character_tokenizer(training_text);
    if (tokenizer_ == "words") return word_tokenizer(training_text, words_);
    return byte_bpe_tokenizer(std::make_shared<const ByteBpe>(bpe_));
  }

  std::vector<std::int32_t> checked(std::vector<std::int32_t> tokens,
                                    const std::filesystem::path& path,
                                    const std::string& what) const {
    if (static_cast<std::int64_t>(tokens.size()) <= length_)
      throw data_error(path, "the ", what, " text has ", counted(tokens.size(), "token"),
                       ", but one sample of ", length_, " needs ", length_ + 1);
    return tokens;
  }

  std::filesystem::path root_, train_, test_;
  double share_;
  std::string tokenizer_;
  std::int64_t length_, words_;
  std::filesystem::path bpe_;
  std::int64_t vocabulary_ = 0;
  std::array<std::vector<std::int32_t>, 2> tokens_;  // per split
};

}  // namespace

PIPEWRIGHT_DATASET(text, Text, "Running text to be continued: bytes, characters, words or BPE.")

}  // namespace pipewright
