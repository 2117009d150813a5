// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/unit/datasets/bpe_fixture.h"
#include "tests/unit/datasets/token_sums.h"

namespace pipewright {
namespace {

using Integers = std::vector<std::int64_t>;

/// RoBERTa's id of a single byte by the fixture's dict.txt.
std::int64_t id(char byte) {
  return 4 + 258 - byte;
}

class Glue : public ::testing::Test {
 protected:
  Glue() { fixtures::put_byte_bpe(folder_); }
  std::unique_ptr<Dataset> opened(const std::string& name) {
    auto dataset = make_dataset(
        name, concat("{root: '", folder_.text(), "', bpe: '", folder_.text(), "', tokens: 8}"));
    dataset->open({});
    return dataset;
  }
  std::string refusal(const std::string& name, const std::string& dev) {
    put(folder_ / "dev.tsv", dev);
    const std::string error = error_of([&] { opened(name); });
    EXPECT_TRUE(contains(error, "dev.tsv: "));
    return error;
  }
  fixtures::TemporaryFolder folder_;
};

TEST_F(Glue, ColaIsSentencesWithAMark) {
  put(folder_ / "train.tsv", "a\t1\t\tlow \"a\nb\t0\t*\tabcdefghi\n");
  put(folder_ / "dev.tsv.gz", fixtures::gzipped("c\t0\t*\tb"));
  const auto data = opened("cola");
  EXPECT_EQ(data->size(Split::Train), 2);
  EXPECT_EQ(data->size(Split::Test), 1);
  EXPECT_EQ(data->sample_shape(), Integers{8});
  EXPECT_EQ(data->classes(), 2);
  EXPECT_EQ(data->vocabulary(), 265);
  EXPECT_EQ(data->task(), Task::Classify);
  EXPECT_EQ(data->metrics(), std::vector<std::string>{"matthews"});
  EXPECT_EQ(data->length(Split::Train, 0), 6);
  EXPECT_EQ(data->length(Split::Train, 1), 8);
  const Integers order{1, 0};
  const Batch batch = data->batch(Split::Train, order, nullptr);
  EXPECT_EQ(batch.x[0].sizes(), (Integers{2, 8}));
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]),
            (Integers{0, id('a'), id('b'), id('c'), id('d'), id('e'), id('f'), 2,  //
                      0, 5, id(' '), id('"'), id('a'), 2, 1, 1}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (Integers{0, 1}));
}

TEST_F(Glue, RteIsPairs) {
  const std::string header = "index\tsentence1\tsentence2\tlabel\n";
  put(folder_ / "train.tsv", header + "0\tlow\ta\tentailment\r\n1\ta\tlow\tnot_entailment\r\n");
  put(folder_ / "dev.tsv", header + "0\tabcde\tb\tentailment");
  const auto data = opened("rte");
  EXPECT_EQ(data->metrics(), std::vector<std::string>{});
  const Batch train = data->batch(Split::Train, first_indices(2), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(train.x[0]),
            (Integers{0, 5, 2, 2, id('a'), 2, 1, 1, 0, id('a'), 2, 2, 5, 2, 1, 1}));
  EXPECT_EQ(values_of<std::int64_t>(train.y), (Integers{0, 1}));
  const Batch test = data->batch(Split::Test, first_indices(1), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(test.x[0]),
            (Integers{0, id('a'), id('b'), id('c'), 2, 2, id('b'), 2}));
}

TEST_F(Glue, NamesTheLineThatIsWrong) {
  put(folder_ / "train.tsv", "a\t1\t\tlow\n");
  EXPECT_TRUE(contains(refusal("cola", "a\t1\t\tlow\na\t1\tlow\n"),
                       "line 2 has 3 columns between tabs, but must have 4"));
  EXPECT_TRUE(
      contains(refusal("cola", "a\t2\t\tlow\n"), "line 1 has label '2', must be one of 0, 1"));
  EXPECT_TRUE(contains(refusal("cola", "a\t1\t\tlow\n\na\t1\t\tlow\n"), "line 2 has 1 column "));
  EXPECT_TRUE(contains(refusal("cola", "a\t1\t\tlow\na\t1\t\t\xe9\n"), "line 2 is not UTF-8"));
  EXPECT_TRUE(contains(refusal("cola", ""), "is empty"));
  std::filesystem::remove(folder_ / "dev.tsv");
  EXPECT_TRUE(contains(error_of([&] { opened("cola"); }), "gluebenchmark.com"));

  const std::string header = "index\tsentence1\tsentence2\tlabel\n";
  put(folder_ / "train.tsv", header + "0\tlow\ta\tentailment\n");
  EXPECT_TRUE(
      contains(refusal("rte", "0\tlow\ta\tentailment\n"), "line 1 is not the header of RTE"));
  EXPECT_TRUE(contains(refusal("rte", header), "has no sentences"));
  EXPECT_TRUE(contains(refusal("rte", header + "0\ta\tb\tmaybe\n"),
                       "line 2 has label 'maybe', must be one of entailment, not_entailment"));
}

// Computed from the same files with the tokenizer of the package transformers 4.57.6.
TEST(GlueFiles, AreReadAsRobertaReadsThem) {
  PIPEWRIGHT_NEEDS_REAL_DATA("glue_data");
  PIPEWRIGHT_NEEDS_REAL_DATA("gpt2_bpe");
  struct Known {
    std::string name, folder;
    Split split;
    std::int64_t samples, positive;
    TokenSums sums;
  };
  for (const Known& known : {
           Known{"cola", "CoLA", Split::Train, 8551, 6023, {97232, 0, 1897262387, 153629915185}},
           Known{"cola", "CoLA", Split::Test, 1043, 721, {12122, 0, 216344639, 16530982251}},
           Known{"rte", "RTE", Split::Train, 2490, 1241, {168185, 316, 25186823874, 282218906578}},
           Known{"rte", "RTE", Split::Test, 277, 131, {18235, 35, 2629230074, 9159844988}},
       }) {
    const auto data = make_dataset(
        known.name, concat("{root: '", fixtures::real_data("glue_data").string(), "/", known.folder,
                           "', bpe: '", fixtures::real_data("gpt2_bpe").string(), "'}"));
    data->open({});
    EXPECT_EQ(data->vocabulary(), 50265);
    ASSERT_EQ(data->size(known.split), known.samples);
    const Batch batch = data->batch(known.split, first_indices(known.samples), nullptr);
    const Integers y = values_of<std::int64_t>(batch.y);
    EXPECT_EQ(std::accumulate(y.begin(), y.end(), std::int64_t{0}), known.positive);
    EXPECT_EQ(token_sums(*data, known.split, known.samples, 128), known.sums);
  }
}

}  // namespace
}  // namespace pipewright
