// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/unit/datasets/token_sums.h"

namespace pipewright {
namespace {

using Integers = std::vector<std::int64_t>;

class Imdb : public DatasetFiles {
 protected:
  Imdb() : DatasetFiles("imdb") {
    // bad 3 times; it's, a and film 2 times; good and movie once
    write("train/neg/10_1.txt", "Bad, BAD!<film>");
    write("train/neg/9_4.txt", "It's a (bad) film...");
    write("train/pos/0_10.txt", "it's\ta\ngood-movie");
    write("train/unsup/0_0.txt", "bad bad bad movie movie movie");
    write("test/neg/3_2.txt", "a new BAD");
    write("test/pos/1_7.txt", "");
  }
};

// The order is that of the numbers, 9 before 10: it's is seen before a, before film.
TEST_F(Imdb, RanksWordsByTheirFrequencyAndThenByFirstOccurrence) {
  const auto data = opened("words: 8, tokens: 6");
  EXPECT_EQ(data->size(Split::Train), 3);
  EXPECT_EQ(data->size(Split::Test), 2);
  EXPECT_EQ(data->sample_shape(), Integers{6});
  EXPECT_EQ(data->classes(), 2);
  EXPECT_EQ(data->vocabulary(), 8);
  EXPECT_EQ(data->task(), Task::Classify);
  const Batch train = data->batch(Split::Train, first_indices(3), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(train.x[0]), (Integers{1, 5, 6, 4, 7, 0,  //
                                                           1, 4, 4, 7, 0, 0,  //
                                                           1, 5, 6, 2, 2, 0}));
  EXPECT_EQ(values_of<std::int64_t>(train.y), (Integers{0, 0, 1}));
  const Batch test = data->batch(Split::Test, first_indices(2), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(test.x[0]), (Integers{1, 6, 2, 4, 0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(data->length(Split::Test, 0), 4);
}

TEST_F(Imdb, KeepsTheFirstTokens) {
  const auto data = opened("tokens: 3");
  EXPECT_EQ(values_of<std::int64_t>(data->batch(Split::Train, first_indices(1), nullptr).x[0]),
            (Integers{1, 5, 6}));
  EXPECT_EQ(data->length(Split::Train, 0), 3);
}

TEST_F(Imdb, SaysWhatIsWrongAndWhereToGetIt) {
  EXPECT_EQ(refusal("tokens: 5"), "");
  put(folder_ / "train/pos/movie.txt", "good");
  EXPECT_TRUE(contains(refusal("tokens: 5"), "'train/pos/movie.txt' is not named ID_RATING.txt"));
  std::filesystem::remove(folder_ / "train/pos/movie.txt");
  put(folder_ / "test/pos/1_7.txt", "caf\xe9");
  EXPECT_TRUE(contains(refusal("tokens: 5"), "'test/pos/1_7.txt' is not UTF-8"));
  std::filesystem::remove(folder_ / "test/pos/1_7.txt");
  EXPECT_TRUE(contains(refusal("tokens: 5"), folder_.text() + ": has no reviews in test/pos/"));
  EXPECT_TRUE(contains(refusal("tokens: 5"), "ai.stanford.edu"));
  std::filesystem::remove_all(folder_ / "");
  EXPECT_TRUE(contains(refusal("tokens: 5"), "ai.stanford.edu"));
}

TEST(ImdbFiles, AreFoundInTheArchiveWhereItIsFetchedTo) {
  PIPEWRIGHT_NEEDS_REAL_DATA("aclImdb");
  const fixtures::TemporaryFolder folder;
  std::filesystem::create_symlink(fixtures::real_data("aclImdb") / "aclImdb_10k.tar.gz",
                                  folder / "aclImdb_v1.tar.gz");
  const auto data = make_dataset("imdb", "{root: '" + folder.text() + "'}");
  data->open({});
  EXPECT_EQ(data->size(Split::Train), 5000);
}

// Computed from the same archive by a few lines of Python with the rules of Keras' Tokenizer.
TEST(ImdbFiles, AreReadAsKerasReadsThem) {
  PIPEWRIGHT_NEEDS_REAL_DATA("aclImdb");
  const auto data = make_dataset(
      "imdb", "{root: '" + (fixtures::real_data("aclImdb") / "aclImdb_10k.tar.gz").string() + "'}");
  data->open({});
  EXPECT_EQ(data->vocabulary(), 10'000);
  struct Known {
    Split split;
    Integers first;
    std::int64_t rare;
    TokenSums sums;
  };
  for (const Known& known : {Known{Split::Train,
                                   {1, 13, 746, 2, 139, 4, 21, 20, 43, 201, 8, 1162},
                                   41272,
                                   {804322, 2162, 51962326953, 294877310161}},
                             Known{Split::Test,
                                   {1, 13, 701, 13, 755, 51, 8, 98, 7, 6, 21, 39},
                                   49276,
                                   {799765, 2091, 48098474268, 271705206656}}}) {
    ASSERT_EQ(data->size(known.split), 5000);
    const Batch batch = data->batch(known.split, first_indices(5000), nullptr);
    const Integers x = values_of<std::int64_t>(batch.x[0]), y = values_of<std::int64_t>(batch.y);
    EXPECT_EQ(std::accumulate(y.begin(), y.end(), std::int64_t{0}), 2500);
    EXPECT_EQ(Integers(x.begin(), x.begin() + 12), known.first);
    EXPECT_EQ(std::count(x.begin(), x.end(), 2), known.rare);
    EXPECT_EQ(token_sums(*data, known.split, 5000, 200), known.sums);
  }
}

}  // namespace
}  // namespace pipewright
