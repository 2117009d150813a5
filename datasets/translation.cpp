// SPDX-License-Identifier: Apache-2.0
/// Pairs of sentences to be translated, from two text files whose lines correspond. They are
/// byte-pair encoded with merges that are learnt from both languages of the training text, as in
/// MLPerf's RNN translation (GNMT).
///
///   x {source, target so far}: [n, S] <s> source </s> and [n, T] <s> target, padded to the longest
///     of the mini-batch with 0
///   y [n, T]: target </s>, padded with kNoTarget
///
/// Tokens are padding 0, unknown 1, <s> 2, </s> 3, then the parts of words in the encoded training
/// text by descending frequency, then unused ones up to the next multiple of 8 (at least one).
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "core/base/error_at.h"
#include "core/nn/dataset.h"
#include "datasets/texts/joint_bpe.h"
#include "datasets/texts/parallel_text.h"
#include "datasets/texts/text_file.h"
#include "datasets/texts/token_lists.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMultiple = 8;

using Parts = std::vector<std::string>;

/// The sentence pairs of one split.
struct Pairs {
  TokenLists source, target;
  std::vector<std::string> references;  // text of each target
};

/// Splits words into parts; each distinct word is encoded once.
class Encoder {
 public:
  explicit Encoder(const JointBpe& bpe) : bpe_(bpe) {}

  const Parts& word(std::string_view word) {
    auto found = known_.find(word);
    if (found == known_.end()) found = known_.emplace(word, bpe_.parts(word)).first;
    return found->second;
  }

 private:
  const JointBpe& bpe_;
  TextMap<Parts> known_;
};

WordCounts counted_words(const ParallelText& text) {
  WordCounts counts;
  for (const auto* side : {&text.source, &text.target})
    for (const std::string& sentence : *side)
      for (const std::string_view word : words_of(sentence)) counts.add(word);
  return counts;
}

class Translation final : public Dataset {
 public:
  explicit Translation(Options& options)
      : root_(options.path(
            "root", "~/data/multi30k",
            "Folder of the texts, plain or gzipped (.gz), named as by Multi30k (task1/raw/train.en "
            "and so on), by OpenNMT (src-train.txt, tgt-train.txt) or simply train.en, train.de.")),
        names_{options.text("source", "en",
                            "Ending of the files of the source language; not used for OpenNMT's."),
               options.text("target", "de",
                            "Ending of the files of the target language; not used for OpenNMT's."),
               options.text("test", "",
                            "Name of the test text without its ending; \"\" = test_2016_flickr "
                            "with Multi30k's files, test with the others.")},
        word_ends_(word_ends(options.choice(
            "words", {"auto", "blanks", "13a"}, "auto",
            "Where words end. blanks: the texts are tokenised; 13a: punctuation is split off as by "
            "mteval-v13a; auto: blanks with OpenNMT's files, 13a with the others."))),
        codes_(options.path("codes", "",
                            "A file of merges learnt by subword-nmt; without one they are learnt "
                            "from the training text of both languages.")),
        merges_(options.integer("merges", 32'000,
                                "Merges to learn where `codes` gives none, at most.",
                                Range{0, 1'000'000})),
        longest_{options.integer("longest", 48,
                                 "Longest sentence in tokens, marks not counted: training pairs "
                                 "with a longer one are left out; 0 = none is.",
                                 kNotNegative),
                 options.integer("longest_test", 48, "The same for test pairs.", kNotNegative)} {}

  void open(const DatasetRequest&) override {
    const ParallelTexts texts = read_parallel_texts(root_, names_, word_ends_);
    const WordCounts words = counted_words(texts.train);
    const JointBpe bpe(codes_.empty() ? learn_merges(words.in_order(), merges_)
                                      : read_merges(codes_));
    Encoder encoder(bpe);
    set_vocabulary(words, encoder);
    pairs_[0] = encoded(texts.train, encoder, longest_[0]);
    pairs_[1] = encoded(texts.test, encoder, longest_[1]);
    longest_sample_ = 0;
    for (const Split split : {Split::Train, Split::Test}) {
      if (size(split) == 0)
        throw data_error(root_, "every ", std::string(split == Split::Train ? "training" : "test"),
                         " pair has a sentence of more tokens than dataset.",
                         std::string(split == Split::Train ? "longest" : "longest_test"));
      for (std::int64_t i = 0; i < size(split); ++i)
        longest_sample_ =
            std::max({longest_sample_, source_length(split, i), target_length(split, i)});
    }
  }

  std::int64_t size(Split split) const override { return pairs(split).source.size(); }
  std::vector<std::int64_t> sample_shape() const override { return {longest_sample_}; }
  std::int64_t classes() const override { return vocabulary(); }
  std::int64_t vocabulary() const override { return (parts_.size() / kMultiple + 1) * kMultiple; }
  Task task() const override { return Task::Translate; }
  std::vector<std::string> metrics() const override { return {"perplexity", "bleu"}; }
  std::int64_t length(Split split, std::int64_t index) const override {
    return source_length(split, index) + target_length(split, index);
  }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const auto count = static_cast<std::int64_t>(indices.size());
    std::int64_t sources = 0, targets = 0;
    for (const std::int64_t index : indices) {
      sources = std::max(sources, source_length(split, index));
      targets = std::max(targets, target_length(split, index));
    }
    Batch batch{{at::empty({count, sources}, at::kLong), at::empty({count, targets}, at::kLong)},
                at::empty({count, targets}, at::kLong)};
    auto* source = batch.x[0].mutable_data_ptr<std::int64_t>();
    auto* so_far = batch.x[1].mutable_data_ptr<std::int64_t>();
    auto* next = batch.y.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t index : indices) {
      const auto from = pairs(split).source[index], to = pairs(split).target[index];
      source = put_row(source, sources, {kStartToken}, from, {kEndToken}, kPaddingToken);
      so_far = put_row(so_far, targets, {kStartToken}, to, {}, kPaddingToken);
      next = put_row(next, targets, {}, to, {kEndToken}, kNoTarget);
    }
    return batch;
  }

  std::string text(std::span<const std::int64_t> tokens) const override {
    std::string text;
    bool goes_on = true;  // the next part follows without a blank
    for (const std::int64_t token : tokens) {
      if (token == kEndToken) break;
      if (token == kPaddingToken || token == kStartToken || token < 0) continue;
      std::string part = token < parts_.size() ? parts_[static_cast<std::int32_t>(token)] : "";
      if (!goes_on) text += ' ';
      goes_on = part.ends_with("@@");
      if (goes_on) part.resize(part.size() - 2);
      text += part;
    }
    return text;
  }

  std::string reference(Split split, std::int64_t index) const override {
    PIPEWRIGHT_CHECK(index >= 0 && index < size(split), "sample ", index);
    return pairs(split).references[static_cast<std::size_t>(index)];
  }

 private:
  static WordEnds word_ends(const std::string& word) {
    if (word == "blanks") return WordEnds::Blanks;
    return word == "13a" ? WordEnds::Punctuation : WordEnds::Known;
  }

  const Pairs& pairs(Split split) const { return pairs_[static_cast<std::size_t>(split)]; }

  /// Tokens of the source, with both marks.
  std::int64_t source_length(Split split, std::int64_t index) const {
    return static_cast<std::int64_t>(pairs(split).source[index].size()) + 2;
  }
  /// Tokens of the target, with one mark: the start in the input, the end in the targets.
  std::int64_t target_length(Split split, std::int64_t index) const {
    return static_cast<std::int64_t>(pairs(split).target[index].size()) + 1;
  }

  /// Writes a row of `width` numbers: `before`, `tokens`, `after`, then `filling`. Returns its end.
  static std::int64_t* put_row(std::int64_t* row, std::int64_t width,
                               std::initializer_list<std::int64_t> before,
                               std::span<const std::int32_t> tokens,
                               std::initializer_list<std::int64_t> after, std::int64_t filling) {
    std::int64_t* const end = row + width;
    row = std::ranges::copy(before, row).out;
    row = std::ranges::copy(tokens, row).out;
    row = std::ranges::copy(after, row).out;
    std::fill(row, end, filling);
    return end;
  }

  /// Numbers the parts. Words are visited in the order of the text, so parts of equal frequency
  /// keep that order as well.
  void set_vocabulary(const WordCounts& words, Encoder& encoder) {
    WordCounts counts;
    for (const WordCounts::Entry& entry : words.in_order())
      for (const std::string& part : encoder.word(entry.word)) counts.add(part, entry.count);
    std::vector<std::string> all{"<pad>", "<unk>", "<s>", "</s>"};
    for (const WordCounts::Entry& entry : counts.ranked()) all.push_back(entry.word);
    parts_ = WordIndex(std::move(all));
  }

  std::vector<std::int32_t> tokens_of(const std::string& sentence, Encoder& encoder) const {
    std::vector<std::int32_t> tokens;
    for (const std::string_view word : words_of(sentence))
      for (const std::string& part : encoder.word(word)) {
        const std::int32_t found = parts_.find(part);
        tokens.push_back(found <= kEndToken ? static_cast<std::int32_t>(kUnknownToken) : found);
      }
    return tokens;
  }

  Pairs encoded(const ParallelText& text, Encoder& encoder, std::int64_t longest) const {
    Pairs pairs;
    for (std::size_t i = 0; i < text.source.size(); ++i) {
      const auto source = tokens_of(text.source[i], encoder);
      const auto target = tokens_of(text.target[i], encoder);
      const auto longer = static_cast<std::int64_t>(std::max(source.size(), target.size()));
      if (longest > 0 && longer > longest) continue;
      pairs.source.append(source);
      pairs.target.append(target);
      pairs.references.push_back(text.target[i]);
    }
    return pairs;
  }

  std::filesystem::path root_;
  ParallelNames names_;
  WordEnds word_ends_;
  std::filesystem::path codes_;
  std::int64_t merges_;
  std::array<std::int64_t, 2> longest_;  // by split
  WordIndex parts_;                      // marks and parts of words, by token
  std::array<Pairs, 2> pairs_;           // by split
  std::int64_t longest_sample_ = 0;
};

}  // namespace

PIPEWRIGHT_DATASET(translation, Translation,
                   "Pairs of sentences to translate (Multi30k, WMT), byte-pair encoded.")

}  // namespace pipewright
