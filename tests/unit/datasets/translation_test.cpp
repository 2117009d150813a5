// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

using Integers = std::vector<std::int64_t>;

/// Without merges the tokens are letters: a@@ b@@ and so on, the last without "@@".
class Translation : public DatasetFiles {
 protected:
  Translation() : DatasetFiles("translation") {
    put(folder_ / "train.en", "ab a\nb ab\na\n");
    put(folder_ / "train.de", "ba b\na\nbbbbb b\n");
    put(folder_ / "test.en", "c aa\n");
    put(folder_ / "test.de.gz", fixtures::gzipped("ab,\n"));
  }
};

// b 6 times, b@@ 5, a 4, a@@ 2
TEST_F(Translation, PadsToTheLongestOfTheMiniBatch) {
  const auto data = opened("merges: 0");
  EXPECT_EQ(data->task(), Task::Translate);
  EXPECT_EQ(data->metrics(), (std::vector<std::string>{"perplexity", "bleu"}));
  EXPECT_EQ(data->vocabulary(), 16) << "4 marks and 4 letters are a multiple of 8: 8 more";
  EXPECT_EQ(data->classes(), 16);
  ASSERT_EQ(data->size(Split::Train), 3);
  EXPECT_EQ(data->sample_shape(), Integers{7}) << "bbbbb b and one mark";
  constexpr std::int64_t b = 4, b_ = 5, a = 6, a_ = 7;
  const Integers first{0, 1};
  const Batch batch = data->batch(Split::Train, first, nullptr);
  ASSERT_EQ(batch.x.size(), 2u);
  EXPECT_EQ(batch.x[0].sizes(), (Integers{2, 5}));
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]), (Integers{2, a_, b, a, 3, 2, b, a_, b, 3}));
  EXPECT_EQ(values_of<std::int64_t>(batch.x[1]), (Integers{2, b_, a, b, 2, a, 0, 0}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (Integers{b_, a, b, 3, a, 3, kNoTarget, kNoTarget}));
  const Integers last{2};
  const Batch other = data->batch(Split::Train, last, nullptr);
  EXPECT_EQ(other.x[0].sizes(), (Integers{1, 3}));
  EXPECT_EQ(other.y.sizes(), (Integers{1, 7}));
  EXPECT_EQ(data->length(Split::Train, 0), 5 + 4);
  EXPECT_EQ(data->length(Split::Train, 2), 3 + 7);

  const Batch test = data->batch(Split::Test, first_indices(1), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(test.x[0]), (Integers{2, 1, a_, a, 3})) << "c is unknown";
  EXPECT_EQ(values_of<std::int64_t>(test.y), (Integers{a_, b, 1, 3})) << "the comma is a word";
}

TEST_F(Translation, GivesTextsBack) {
  const auto data = opened("merges: 0");
  EXPECT_EQ(data->reference(Split::Test, 0), "ab ,");
  EXPECT_EQ(data->reference(Split::Train, 2), "bbbbb b");
  EXPECT_EQ(data->text(Integers{2, 5, 5, 4, 6, 3, 6, 0}), "bbb a") << "nothing after the end mark";
  EXPECT_EQ(data->text(Integers{1, 7, 15, 0, kNoTarget}), "<unk> a");
  EXPECT_EQ(data->text(Integers{}), "");
}

TEST_F(Translation, LeavesLongPairsOut) {
  const auto data = opened("merges: 0, longest: 5");
  EXPECT_EQ(data->size(Split::Train), 2);
  EXPECT_EQ(data->vocabulary(), 16) << "of the whole training text";
  EXPECT_EQ(opened("merges: 0, longest: 6")->size(Split::Train), 3);
  EXPECT_EQ(opened("merges: 0, longest: 0")->size(Split::Train), 3);
  EXPECT_TRUE(contains(refusal("merges: 0, longest: 1"),
                       "every training pair has a sentence of more tokens than dataset.longest"));
  EXPECT_TRUE(contains(refusal("merges: 0, longest_test: 2"),
                       "more tokens than "
                       "dataset.longest_test"));
}

TEST_F(Translation, MergesWhatIsFrequent) {
  const auto learnt = opened("merges: 2");  // b b 3 times, then a b</w> 2
  put(folder_ / "codes", "#version: 0.2\na b</w>\n");
  const auto read = opened("codes: '" + (folder_ / "codes").string() + "'");
  for (const auto* data : {&learnt, &read})
    EXPECT_EQ((*data)->length(Split::Train, 0), 4 + 4) << "ab is one part";
  put(folder_ / "codes", "a b\n");
  EXPECT_TRUE(contains(refusal("codes: '" + (folder_ / "codes").string() + "'"), "codes: line 1"));
}

TEST_F(Translation, TakesTokenisedTextsAsTheyAre) {
  put(folder_ / "src-train.txt", "it &apos;s , 5,5\n");
  put(folder_ / "tgt-train.txt", "es\tist 5,5\n");
  put(folder_ / "src-test.txt", "a.\n");
  put(folder_ / "tgt-test.txt", "b.\n");
  EXPECT_EQ(opened("merges: 0")->reference(Split::Test, 0), "b.");
  EXPECT_EQ(opened("merges: 0")->reference(Split::Train, 0), "es ist 5,5");
  EXPECT_EQ(opened("words: 13a")->reference(Split::Test, 0), "b .");
}

TEST_F(Translation, SaysWhatIsWrong) {
  put(folder_ / "train.de", "a\nb\n");
  EXPECT_TRUE(contains(refusal("merges: 0"), "train.de: has 2 lines, but train.en has 3"));
  put(folder_ / "train.de", "a\nb\n\xff\n");
  EXPECT_TRUE(contains(refusal("merges: 0"), "train.de: line 3 is not UTF-8"));
  put(folder_ / "train.de", "");
  EXPECT_TRUE(contains(refusal("merges: 0"), "train.de: is empty"));
  std::filesystem::remove(folder_ / "train.de");
  EXPECT_TRUE(contains(refusal("merges: 0"), "train.de: no such file, nor train.de.gz"));
  EXPECT_TRUE(
      contains(refusal("source: fr"), "holds none of task1/raw/train.fr, src-train.txt, train.fr"));
  put(folder_ / "train.de", "a\nb\nc\n");
  EXPECT_TRUE(contains(refusal("test: newstest2014"), "newstest2014.en: no such file"));
}

/// Tokens that are no marks.
Integers words_of(const at::Tensor& tokens) {
  Integers all = values_of<std::int64_t>(tokens);
  std::erase_if(all, [](std::int64_t token) { return token < 4; });
  return all;
}

Integers words_of_first(const at::Tensor& tokens) {
  return words_of(tokens[0]);
}

/// How many words, and a sum that their order matters to.
std::pair<std::int64_t, std::int64_t> summed(const at::Tensor& tokens) {
  const Integers words = words_of(tokens);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    sum += (static_cast<std::int64_t>(i) % 1000 + 1) * words[i];
  return {static_cast<std::int64_t>(words.size()), sum};
}

// Computed from the same files with subword-nmt 0.3.8 and the tokenizer 13a of sacrebleu.
TEST(TranslationFiles, Multi30kIsEncodedAsBySubwordNmt) {
  PIPEWRIGHT_NEEDS_REAL_DATA("multi30k");
  const auto data = make_dataset(
      "translation", "{merges: 2000, root: '" + fixtures::real_data("multi30k").string() + "'}");
  data->open({});
  EXPECT_EQ(data->vocabulary(), 2168) << "2,162 parts, 4 marks and filler";
  EXPECT_EQ(data->sample_shape(), Integers{50});
  struct Known {
    Split split;
    std::int64_t pairs, source_tokens, target_tokens, sources, targets;
    Integers first_source, first_target;
  };
  for (const Known& known :
       {Known{Split::Train,
              28908,
              499823,
              543747,
              81732828408,
              99868614400,
              {46, 80, 10, 139, 59, 1285, 1370, 36, 29, 231, 343, 1571, 354, 1461, 4},
              {42, 387, 1065, 111, 395, 44, 418, 6, 25, 493, 1692, 43, 1766, 265, 4}},
        Known{Split::Test,
              999,
              17209,
              18304,
              2773174065,
              3371503929,
              {7, 19, 6, 24, 351, 153, 41, 1304, 88, 37, 496, 4},
              {8, 17, 14, 9, 835, 467, 10, 25, 331, 87, 41, 1304, 35, 4}}}) {
    ASSERT_EQ(data->size(known.split), known.pairs);
    const Batch batch = data->batch(known.split, first_indices(known.pairs), nullptr);
    EXPECT_EQ(words_of_first(batch.x[0]), known.first_source);
    EXPECT_EQ(words_of_first(batch.y), known.first_target);
    EXPECT_EQ(summed(batch.x[0]), std::pair(known.source_tokens, known.sources));
    EXPECT_EQ(summed(batch.y), std::pair(known.target_tokens, known.targets));
    EXPECT_EQ(summed(batch.x[1]), std::pair(known.target_tokens, known.targets));
  }
}

}  // namespace
}  // namespace pipewright
