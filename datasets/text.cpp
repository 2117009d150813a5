// SPDX-License-Identifier: Apache-2.0
/// Running text to be continued: sample i is tokens [i·T, i·T + T) of a file, and its targets are
/// the tokens shifted by one position. Tokens behind the last complete sample are not used.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "core/fetch/sources.h"
#include "core/nn/dataset.h"
#include "datasets/texts/byte_bpe.h"
#include "datasets/texts/text_file.h"
#include "datasets/texts/text_tokenizers.h"

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
    throw Error(ErrorKind::Data,
                concat("holds none of wiki.train.tokens, train.txt and input.txt, plain or gzipped "
                       "(.gz). It is ",
                       std::string(kTextOrigin), fetch_advice("text")),
                root_.string());
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
      throw Error(ErrorKind::Data,
                  concat("the ", what, " text has ", counted(tokens.size(), "token"),
                         ", but one sample of ", length_, " needs ", length_ + 1),
                  path.string());
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
