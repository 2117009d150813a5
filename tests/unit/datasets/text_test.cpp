// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/datasets/bpe_fixture.h"

namespace pipewright {
namespace {

using Integers = std::vector<std::int64_t>;

class RunningText : public ::testing::Test {
 protected:
  std::string path(const std::string& name) { return "'" + (folder_ / name).string() + "'"; }
  std::unique_ptr<Dataset> opened(const std::string& options) {
    auto dataset = make_dataset("text", "{" + options + "}");
    dataset->open({});
    return dataset;
  }
  std::string refusal(const std::string& options) {
    return error_of([&] { opened(options); });
  }
  static Integers x_of(const Dataset& data, Split split) {
    return values_of<std::int64_t>(
        data.batch(split, first_indices(data.size(split)), nullptr).x[0]);
  }
  fixtures::TemporaryFolder folder_;
};

TEST_F(RunningText, ContinuesEachTokenWithTheNext) {
  put(folder_ / "train.txt", "abcdefgh");  // the last has no next, and two are no sample of three
  put(folder_ / "test.txt.gz", fixtures::gzipped("wxyz"));
  const auto data = opened("root: " + path("") + ", tokenizer: bytes, tokens: 3");
  EXPECT_EQ(data->task(), Task::Continue);
  EXPECT_EQ(data->metrics(), std::vector<std::string>{"perplexity"});
  EXPECT_EQ(data->vocabulary(), 256);
  EXPECT_EQ(data->classes(), 256);
  EXPECT_EQ(data->sample_shape(), Integers{3});
  EXPECT_EQ(data->length(Split::Train, 0), 3);
  ASSERT_EQ(data->size(Split::Train), 2);
  ASSERT_EQ(data->size(Split::Test), 1);
  const Integers order{1, 0};
  const Batch batch = data->batch(Split::Train, order, nullptr);
  EXPECT_EQ(batch.y.sizes(), (Integers{2, 3}));
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]), (Integers{'d', 'e', 'f', 'a', 'b', 'c'}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (Integers{'e', 'f', 'g', 'b', 'c', 'd'}));
  EXPECT_EQ(x_of(*data, Split::Test), (Integers{'w', 'x', 'y'}));
}

TEST_F(RunningText, NumbersTheCharactersOfTheTrainingText) {
  put(folder_ / "a", "c\u20aca\u00e9a");
  put(folder_ / "b", "a\u20acb\u00e9c");
  const auto data = opened("train: " + path("a") + ", test: " + path("b") + ", tokens: 4");
  EXPECT_EQ(data->vocabulary(), 5);  // unknown, a, c, é, €
  EXPECT_EQ(x_of(*data, Split::Train), (Integers{2, 4, 1, 3}));
  EXPECT_EQ(x_of(*data, Split::Test), (Integers{1, 4, 0, 3}));
}

TEST_F(RunningText, AByteOrderMarkIsNoCharacter) {
  put(folder_ / "a",
      "\xEF\xBB\xBF"
      "cabab");
  put(folder_ / "b", "\xEF\xBB\xBF");
  const std::string a = "train: " + path("a"), more = ", tokens: 2";
  const auto data = opened(a + ", test: " + path("a") + more);
  EXPECT_EQ(data->vocabulary(), 4);  // unknown, a, b, c
  EXPECT_EQ(x_of(*data, Split::Train), (Integers{3, 1, 2, 1}));
  EXPECT_TRUE(contains(refusal(a + ", test: " + path("b") + more), "is empty"));
  EXPECT_TRUE(contains(refusal(a + ", test: " + path("") + more), "is a folder; expected a file"));
}

TEST_F(RunningText, KnowsItsVocabularyBeforeItIsOpened) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += i == 28 ? "cd " : "ab ";  // "cd" is in the test half
  put(folder_ / "input.txt", text);
  const auto form = [&](const std::string& options) {
    const SampleForm of =
        make_dataset("text", "{root: " + path("") + options + "}")->form(Task::Classify);
    EXPECT_EQ(of.classes, of.vocabulary) << options;
    return of.vocabulary;
  };
  for (const std::string options :
       {"", ", test_share: 0.5", ", tokenizer: words", ", tokenizer: bytes"})
    EXPECT_EQ(form(options + ", tokens: 1"),
              opened("root: " + path("") + options + ", tokens: 1")->vocabulary())
        << options;
  EXPECT_EQ(form(""), 6);  // unknown, space, a to d
  EXPECT_EQ(form(", test_share: 0.5"), 4);
  EXPECT_EQ(form(", tokenizer: bpe, bpe: " + path("none")), 0);
  EXPECT_EQ(make_dataset("text", "{root: " + path("none") + "}")->form(Task::Classify).vocabulary,
            0);
}

// the 3 times, <eos> 2, b and cat once, b first
TEST_F(RunningText, NumbersTheWordsByTheirFrequency) {
  put(folder_ / "a", "the b the\n cat\tthe <unk>");
  put(folder_ / "b", "the dog\n\ncat b\n");
  const std::string files = "train: " + path("a") + ", test: " + path("b");
  const auto data = opened(files + ", tokenizer: words, tokens: 6");
  EXPECT_EQ(data->vocabulary(), 5);
  EXPECT_EQ(x_of(*data, Split::Train), (Integers{1, 3, 1, 2, 4, 1}));
  EXPECT_EQ(x_of(*data, Split::Test), (Integers{1, 0, 2, 2, 4, 3}));
  const auto few = opened(files + ", tokenizer: words, tokens: 6, words: 3");
  EXPECT_EQ(few->vocabulary(), 3);
  EXPECT_EQ(x_of(*few, Split::Test), (Integers{1, 0, 2, 2, 0, 0}));
}

TEST_F(RunningText, IsCutByGpt2sTokens) {
  fixtures::put_byte_bpe(folder_);
  put(folder_ / "a", "low low low\n");
  put(folder_ / "b", "lo low a");
  const auto data = opened("train: " + path("a") + ", test: " + path("b") + ", bpe: " + path("") +
                           ", tokenizer: bpe, tokens: 3");
  EXPECT_EQ(data->vocabulary(), 259);
  EXPECT_EQ(x_of(*data, Split::Train), (Integers{257, 258, 258}));
  EXPECT_EQ(x_of(*data, Split::Test), (Integers{256, 258, ' '}));
}

TEST_F(RunningText, HoldsItsEndBackForTesting) {
  put(folder_ / "input.txt",
      "ab\u20ac\u20ac"
      "cdefgh");  // the cut at byte 6 of 14 is within €
  const auto data = opened("root: " + path("") + ", tokens: 2, tokenizer: bytes, test_share: 0.55");
  EXPECT_EQ(x_of(*data, Split::Train).size(), 6u);  // 8 bytes, not 5
  EXPECT_EQ(x_of(*data, Split::Test), (Integers{'c', 'd', 'e', 'f'}));
  put(folder_ / "input.txt", "one two three four five six");
  const auto words = opened("root: " + path("") + ", tokens: 1, tokenizer: words, test_share: 0.4");
  EXPECT_EQ(words->size(Split::Train), 4) << "one two three four <eos>";
  EXPECT_EQ(words->size(Split::Test), 2) << "five six <eos>";
}

TEST_F(RunningText, SaysWhatIsWrong) {
  EXPECT_TRUE(contains(refusal("root: " + path("")), "holds none of wiki.train.tokens"));
  put(folder_ / "wiki.train.tokens", "a b c d e f");
  EXPECT_TRUE(contains(refusal("root: " + path("")), "wiki.test.tokens: no such file"));
  EXPECT_TRUE(contains(refusal("train: " + path("no")), "no: no such file, nor no.gz"));
  put(folder_ / "empty", "");
  EXPECT_TRUE(contains(refusal("train: " + path("empty")), "empty: is empty"));
  put(folder_ / "latin", "a\nb\ncaf\xe9\n");
  EXPECT_TRUE(contains(refusal("train: " + path("latin")), "latin: line 3 is not UTF-8"));
  put(folder_ / "short", "abcdefghijklmnopqrst");
  EXPECT_TRUE(contains(refusal("train: " + path("short") + ", tokens: 18"),
                       "the training text has 18 tokens, but one sample of 18 needs 19"));
  EXPECT_TRUE(contains(refusal("train: " + path("short") + ", tokens: 2"),
                       "the test text has 2 tokens, but one sample of 2 needs 3"));
  EXPECT_TRUE(contains(error_of([&] { make_dataset("text", "{test: x}"); }, ErrorKind::Experiment),
                       "needs `train` too"));
}

std::int64_t weighted(const Integers& tokens) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    sum += (static_cast<std::int64_t>(i) % 1000 + 1) * tokens[i];
  return sum;
}

// Counts of words are the published ones; sums were computed from the same files in Python.
TEST(TextFiles, WikiText2HasItsWords) {
  PIPEWRIGHT_NEEDS_REAL_DATA("wikitext-2");
  const auto data = make_dataset(
      "text", "{tokenizer: words, root: '" + fixtures::real_data("wikitext-2").string() + "'}");
  data->open({});
  EXPECT_EQ(data->vocabulary(), 33'278);
  EXPECT_EQ(data->size(Split::Train), (2'088'628 - 1) / 128);
  EXPECT_EQ(data->size(Split::Test), (245'569 - 1) / 128);
  const Batch train = data->batch(Split::Train, first_indices(16317), nullptr);
  EXPECT_EQ(weighted(values_of<std::int64_t>(train.x[0])), 2319547296951);
  EXPECT_EQ(weighted(values_of<std::int64_t>(train.y)), 2319655832051);
  const Batch test = data->batch(Split::Test, first_indices(1918), nullptr);
  EXPECT_EQ(weighted(values_of<std::int64_t>(test.x[0])), 237801072448);
}

TEST(TextFiles, WikiText2HasGpt2sTokens) {
  PIPEWRIGHT_NEEDS_REAL_DATA("wikitext-2");
  PIPEWRIGHT_NEEDS_REAL_DATA("gpt2_bpe");
  const std::string file = (fixtures::real_data("wikitext-2") / "wiki.test.tokens").string();
  const auto data =
      make_dataset("text", concat("{tokenizer: bpe, train: '", file, "', test: '", file,
                                  "', bpe: '", fixtures::real_data("gpt2_bpe").string(), "'}"));
  data->open({});
  EXPECT_EQ(data->vocabulary(), 50'257);
  ASSERT_EQ(data->size(Split::Test), 2311);
  const Batch test = data->batch(Split::Test, first_indices(2311), nullptr);
  EXPECT_EQ(weighted(values_of<std::int64_t>(test.x[0])), 595878887814);
}

TEST(TextFiles, TinyShakespeareIsReadByCharacters) {
  PIPEWRIGHT_NEEDS_REAL_DATA("tinyshakespeare");
  const auto data =
      make_dataset("text", "{root: '" + fixtures::real_data("tinyshakespeare").string() + "'}");
  data->open({});
  EXPECT_EQ(data->vocabulary(), 65 + 1);
  EXPECT_EQ(data->size(Split::Train), (1'003'854 - 1) / 128);
  EXPECT_EQ(data->size(Split::Test), (111'540 - 1) / 128);
  const Integers train =
      values_of<std::int64_t>(data->batch(Split::Train, first_indices(1), nullptr).x[0]);
  const Integers test =
      values_of<std::int64_t>(data->batch(Split::Test, first_indices(1), nullptr).x[0]);
  EXPECT_EQ(Integers(train.begin(), train.begin() + 12),
            (Integers{19, 48, 57, 58, 59, 2, 16, 48, 59, 48, 65, 44}));
  EXPECT_EQ(Integers(test.begin(), test.begin() + 8), (Integers{13, 1, 1, 20, 31, 18, 26, 22}));
}

}  // namespace
}  // namespace pipewright
