// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/csv_numbers.h"

#include <ATen/ATen.h>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

CsvColumn named(const std::string& name) {
  return {0, name, "dataset.columns", "x.yaml:1:2"};
}
CsvColumn numbered(std::int64_t number) {
  return {number, "", "dataset.target", "x.yaml:1:3"};
}

class CsvNumbersFile : public ::testing::Test {
 protected:
  CsvNumbers numbers(const std::string& text, const CsvColumns& columns = {},
                     const CsvForm& form = {}) {
    put(path_, text);
    return read_csv_numbers(path_, columns, form);
  }
  std::string refusal(const std::string& text, const CsvColumns& columns = {}) {
    return error_of([&] { numbers(text, columns); });
  }
  std::string wrong_choice(const std::string& text, const CsvColumns& columns) {
    const std::string error = error_of([&] { numbers(text, columns); }, ErrorKind::Experiment);
    EXPECT_TRUE(error.starts_with("x.yaml:1:")) << error;
    return error;
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "t.csv";
};

void expect_table(const CsvNumbers& numbers, const std::vector<double>& x,
                  const std::vector<double>& y) {
  EXPECT_EQ(values_of<double>(numbers.x), x);
  EXPECT_EQ(values_of<double>(numbers.y), y);
}

TEST_F(CsvNumbersFile, HasItsTargetInTheLastColumn) {
  const CsvNumbers read = numbers("1,2,3\n4,5,6\n");
  expect_table(read, {1, 2, 4, 5}, {3, 6});
  EXPECT_EQ(read.x.sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(read.y.sizes(), (std::vector<std::int64_t>{2, 1}));
}

TEST_F(CsvNumbersFile, ReadsNumbersAsEveryProgramWritesThem) {
  expect_table(numbers("\xef\xbb\xbf-1.5e3, +2 ,\"3\"\r\n.5,1E-2,-0\r\n\r\n"),
               {-1500, 2, 0.5, 0.01}, {3, -0.0});
  expect_table(numbers("1;2", {}, {.separator = ';'}), {1}, {2});
  expect_table(numbers("1\t2\n", {}, {.separator = '\t'}), {1}, {2});
}

TEST_F(CsvNumbersFile, ReadsTheChosenColumnsOnly) {
  const std::string text = "id,\"price, in €\",rooms,area\nA1,100.5,3,70\nB2,200.5,4,90\n";
  expect_table(numbers(text, {{named("rooms"), named("area")}, {numbered(2)}}), {3, 70, 4, 90},
               {100.5, 200.5});
  expect_table(numbers(text, {{named("area")}, {named("price, in €"), numbered(3)}}), {70, 90},
               {100.5, 3, 200.5, 4});
}

TEST_F(CsvNumbersFile, HasNamesThatAreNumbersWhereTheyAreSaidToBe) {
  const std::string text = "0,1,2\n4,5,6\n";
  EXPECT_TRUE(contains(refusal(text), ":1:1: the first line counts 0, 1, 2, …, as pandas names"));
  expect_table(numbers(text, {}, {.header = CsvHeader::Names}), {4, 5}, {6});
  expect_table(numbers(text, {}, {.header = CsvHeader::None}), {0, 1, 4, 5}, {2, 6});
  expect_table(numbers("0,2\n4,5\n"), {0, 4}, {2, 5});
  EXPECT_TRUE(contains(refusal("1,2,good\n3,4,bad\n"), "or dataset.header: names, or none"));
}

TEST_F(CsvNumbersFile, LeavesColumnsWithoutANameOut) {
  const CsvNumbers read = numbers(",0,1,2\n0,4,5,6\n1,7,8,9\n");
  expect_table(read, {4, 5, 7, 8}, {6, 9});
  EXPECT_EQ(read.unnamed, 1u);
  expect_table(numbers(",a,b\n7,1,2\n"), {1}, {2});
  expect_table(numbers(",a,b\n7,1,2\n", {{numbered(1)}, {}}), {7}, {2});
}

TEST_F(CsvNumbersFile, ReadsDecimalCommasWhereAsked) {
  const CsvForm form{.separator = ';', .decimal_comma = true};
  expect_table(numbers("-1,5;2\n+3,25e1;\"4,5\"\n", {}, form), {-1.5, 32.5}, {2, 4.5});
  EXPECT_TRUE(
      contains(error_of([&] { numbers("1;2\n1.5;2\n", {}, form); }),
               "is '1.5'; expected a finite number such as -1,5e3 (dataset.decimal: point)"));
  EXPECT_TRUE(contains(error_of([&] { numbers("1;2\n1,5;2\n", {}, {.separator = ';'}); }),
                       "(dataset.decimal: comma)"));
}

TEST_F(CsvNumbersFile, HasTextsAsClassesInAllRowsOrNone) {
  const CsvForm form{.classes = true};
  const CsvNumbers read = numbers("a,y\n1,poor\n2,\"good, \"\"really\"\"\"\n", {}, form);
  EXPECT_EQ(values_of<double>(read.x), (std::vector<double>{1, 2}));
  EXPECT_EQ(read.texts, (std::vector<std::string>{"poor", "good, \"really\""}));
  const auto refused = [&](const std::string& text) {
    return error_of([&] { numbers(text, {}, form); });
  };
  EXPECT_TRUE(contains(refused("a,y\n1,poor\n2,3\n"), ":3:3: column 2 (y) is 3; classes are all"));
  EXPECT_TRUE(contains(refused("a,y\n1,3\n2,poor\n"), ":3:3: column 2 (y) is 'poor'; expected a"));
  EXPECT_TRUE(contains(refused("a,y\n1,poor\n2,\n"), ":3:3: column 2 (y) is empty"));
  EXPECT_TRUE(contains(refusal("a,y\n1,poor\n"), "is 'poor'; expected a finite number"));
}

TEST_F(CsvNumbersFile, SaysWhichFieldIsNoNumber) {
  const std::string where = path_.string();
  const auto at = [&](const std::string& place, const std::string& what, const std::string& text) {
    const std::string error = refusal(text);
    EXPECT_TRUE(error.starts_with(where + place + ": ")) << error;
    EXPECT_TRUE(contains(error, what));
  };
  at(":3:3", "column 2 (b) is 'x'; expected a finite number", "a,b,c\n1,2,3\n4,x,6\n");
  at(":2:5", "column 3 is empty", "1,2,3\n4,5,\n");
  at(":2:1", "column 1 is 'nan'", "1,2\nnan,2\n");
  at(":2:4", "column 2 is '1e999'", "1,2\n1, 1e999\n");
  at(":2:1", "column 1 is '0x10'", "1,2\n0x10,2\n");
  at(":2:1", "a line of 3 fields; expected 2", "1,2\n1,2,3\n");
  at(":3:1", "a row behind the empty line 2", "1,2\n\n1,2\n");
  at(":1:3", "'2' is a number, other fields of the first line are not", "a,2\n1,2\n");
  at(":2:3", "a quote is not closed", "1,2\n1,\"2\n");
  at(":2:4", "a separator is missing behind a closing quote", "1,2\n\"1\"x,3\n");
  at(":1:1", "a line of 1 field; expected inputs and a target", "1\n2\n");
  EXPECT_TRUE(contains(refusal("\n\n"), "is empty"));
  EXPECT_TRUE(contains(refusal("a,b\n"), "no row of numbers"));
}

TEST_F(CsvNumbersFile, SaysWhichChoiceOfColumnsIsWrong) {
  const std::string text = "rooms,area,price\n1,2,3\n";
  EXPECT_TRUE(contains(wrong_choice(text, {{named("room")}, {}}),
                       "dataset.columns names the column 'room', but t.csv has no such column; did "
                       "you mean 'rooms'?"));
  EXPECT_TRUE(contains(wrong_choice(text, {{}, {numbered(4)}}),
                       "dataset.target names column 4, but t.csv has 3 columns"));
  EXPECT_TRUE(contains(wrong_choice("1,2\n", {{named("a")}, {}}), "names no columns"));
  EXPECT_TRUE(contains(wrong_choice("a,a,b\n1,2,3\n", {{named("a")}, {}}), "several"));
  EXPECT_TRUE(
      contains(wrong_choice(text, {{named("area"), numbered(2)}, {}}), "column 2 of t.csv"));
  EXPECT_TRUE(contains(wrong_choice(text, {{named("price")}, {}}), "which is the target"));
}

}  // namespace
}  // namespace pipewright
