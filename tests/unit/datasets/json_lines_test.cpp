// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

using Numbers = std::vector<std::int64_t>;

class JsonLines : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> opened(const std::string& lines, const std::string& more) {
    put(file_, lines);
    auto data = make_dataset("json_lines", concat("{file: '", file_.string(), "', ", more, "}"));
    data->open({});
    return data;
  }
  std::string refusal(const std::string& lines, const std::string& more,
                      ErrorKind kind = ErrorKind::Data) {
    return error_of([&] { opened(lines, more); }, kind);
  }
  std::string test_file(const std::string& lines) {
    put(folder_ / "test.jsonl", lines);
    return concat("test_file: '", (folder_ / "test.jsonl").string(), "'");
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "train.jsonl";
};

TEST_F(JsonLines, RanksWordsOfTheTrainingTextsAndNamesOfClasses) {
  const std::string test = test_file("{\"text\": \"bad, unseen bad!\", \"label\": \"no\"}\n");
  const auto data = opened(
      "{\"text\": \"Bad film\", \"label\": \"no\"}\n\n"
      "{\"label\": \"yes\", \"text\": \"a film, a FILM\", \"more\": [1]}\n",
      test + ", tokens: 5");
  // film 3 times, a twice, bad once: ranks 1, 2, 3, which are the tokens 4, 5, 6
  const Batch train = data->batch(Split::Train, first_indices(2), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(train.x[0]), (Numbers{1, 6, 4, 0, 0, 1, 5, 4, 5, 4}));
  EXPECT_EQ(values_of<std::int64_t>(train.y), (Numbers{0, 1}));
  EXPECT_EQ(values_of<std::int64_t>(data->batch(Split::Test, first_indices(1), nullptr).x[0]),
            (Numbers{1, 6, 2, 6, 0}));
  EXPECT_EQ(data->classes(), 2);
  EXPECT_EQ(data->vocabulary(), 10'000);
}

TEST_F(JsonLines, TakesNumbersAndOtherKeysAndDrawsTestTexts) {
  std::string lines;
  for (int i = 0; i < 10; ++i)
    lines += concat("{\"body\": \"w", i, "\", \"stars\": ", i % 5, "}\n");
  const auto data = opened(lines, "text: body, label: stars, split: 0.3, tokens: 2, words: 5");
  EXPECT_EQ(data->size(Split::Train), 7);
  EXPECT_EQ(data->size(Split::Test), 3);
  const Batch train = data->batch(Split::Train, first_indices(7), nullptr);
  EXPECT_EQ(train.x[0].max().item<std::int64_t>(), 4) << "one word and no more";
}

TEST_F(JsonLines, TakesWholeRealNumbersAndTruthValuesAsClasses) {
  const auto line = [](const std::string& label) {
    return concat("{\"text\": \"a\", \"label\": ", label, "}\n");
  };
  EXPECT_EQ(opened(line("0.0") + line("1.0") + line("2"), "split: 1")->classes(), 3);
  EXPECT_EQ(
      opened(line("true") + line("false") + line("true") + line("false"), "split: 1")->classes(),
      2);
  const auto from_one = opened(line("1") + line("3") + line("1"), test_file(line("1")));
  ASSERT_EQ(from_one->remarks().size(), 1u);
  EXPECT_TRUE(contains(from_one->remarks()[0], "labels are 1 to 3, and classes count from 0"));
  EXPECT_TRUE(opened(line("1") + line("3") + line("1"), test_file(line("0")))->remarks().empty());
}

TEST_F(JsonLines, SaysWhichLineIsWrong) {
  const std::string right = "{\"text\": \"a\", \"label\": 0}\n";
  const auto second = [&](const std::string& line) {
    const std::string error = refusal(right + line + "\n", "split: 1");
    EXPECT_TRUE(contains(error, "train.jsonl:2: "));
    return error;
  };
  EXPECT_TRUE(contains(refusal("", "split: 1"), "train.jsonl: is empty"));
  EXPECT_TRUE(
      contains(refusal("\n \n", "split: 1"), "train.jsonl: has no sample, only empty lines"));
  EXPECT_TRUE(contains(refusal(right, test_file("\n")), "test.jsonl: has no sample"));
  EXPECT_TRUE(contains(second("{\"text\": \"a\""), "no JSON"));
  EXPECT_TRUE(contains(second("[1]"), "has no 'text'"));
  EXPECT_TRUE(contains(second("{\"text\": \"a\"}"), "has no 'label'"));
  EXPECT_TRUE(contains(second("{\"text\": 3, \"label\": 0}"), "'text' is 3; expected a text"));
  EXPECT_TRUE(contains(second("{\"text\": \"a\", \"label\": -1}"), "'label' is -1"));
  EXPECT_TRUE(contains(second("{\"text\": \"a\", \"label\": 0.5}"), "'label' is 0.5"));
  EXPECT_TRUE(
      contains(refusal(right + "{\"text\": \"a\", \"label\": \"b\"}\n" + right, test_file(right)),
               "train.jsonl:2: 'label' is 'b'; labels are all numbers, or all names"));
  EXPECT_TRUE(contains(refusal(right + "{\"text\": \"a\", \"label\": 256}\n", test_file(right)),
                       "at most 256 classes"));
  EXPECT_TRUE(contains(refusal(right, test_file("{\"text\": \"a\", \"label\": 1}\n")),
                       "test.jsonl:1: 'label' is 1, a class that no training text has"));
  EXPECT_TRUE(contains(refusal(right, "split: 0", ErrorKind::Experiment), "dataset.split is 0"));
  EXPECT_TRUE(contains(refusal(right, "split: 1, " + test_file(right), ErrorKind::Experiment),
                       "beside dataset.test_file"));
}

}  // namespace
}  // namespace pipewright
