// SPDX-License-Identifier: Apache-2.0
// Comma-separated text as RFC 4180 describes it.
#include "core/base/csv.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/parsed.h"

namespace pipewright {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, CsvDialect dialect = {}) {
  Rows rows;
  for (CsvReader reader(text, "f.csv", dialect); reader.next();) rows.push_back(reader.texts());
  return rows;
}

/// The text of the Error{Data} that reading throws.
std::string refusal(std::string_view text, CsvDialect dialect = {}) {
  try {
    rows_of(text, dialect);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Data ? error.what() : "another kind";
  }
  return "no error";
}

TEST(Csv, HasARowForEachLine) {
  EXPECT_EQ(rows_of("a,b\n1,\n"), (Rows{{"a", "b"}, {"1", ""}}));
  EXPECT_EQ(rows_of("a,b\r\n1,2\r\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of(",\n"), (Rows{{"", ""}}));
  EXPECT_EQ(rows_of("\xef\xbb\xbf"
                    "a"),
            (Rows{{"a"}}));
  EXPECT_EQ(rows_of(""), Rows());
  EXPECT_EQ(rows_of("a;b", {.separator = ';'}), (Rows{{"a", "b"}}));
}

TEST(Csv, HasNoFieldsInABlankLine) {
  EXPECT_EQ(rows_of("\n\r\na\n\n"), (Rows{{}, {}, {"a"}, {}}));
  EXPECT_EQ(rows_of("\"\"\n"), (Rows{{""}}));
}

TEST(Csv, QuotedFieldsHoldSeparatorsQuotesAndLineBreaks) {
  const std::string text = "\"x, \"\"y\"\"\nz\",1\r\n\"\"\"\",\"a\nb\"\nlast,\n";
  EXPECT_EQ(rows_of(text), (Rows{{"x, \"y\"\nz", "1"}, {"\"", "a\nb"}, {"last", ""}}));
  CsvReader reader(text, "f.csv");
  std::vector<std::size_t> lines, columns;
  while (reader.next()) {
    lines.push_back(reader.line());
    columns.push_back(reader.fields().back().column);
  }
  EXPECT_EQ(lines, (std::vector<std::size_t>{1, 3, 5}));
  EXPECT_EQ(columns, (std::vector<std::size_t>{14, 6, 6}));
}

TEST(Csv, SaysWhetherARowIsComplete) {
  for (const auto& [text, complete] :
       std::vector<std::pair<std::string, bool>>{{"a", false},
                                                 {"a\n", true},
                                                 {"\"a\"\n", true},
                                                 {"\"a\n\"", false},
                                                 {"\"a\n\"\r\n", true}}) {
    CsvReader reader(text, "f.csv");
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.complete(), complete) << text;
    EXPECT_FALSE(reader.next()) << text;
  }
}

TEST(Csv, ThatIsDamagedIsRefusedWithLineAndColumn) {
  EXPECT_EQ(refusal("a\nb,\"c\n"), "f.csv:2:3: a quote is not closed");
  EXPECT_EQ(refusal("a\nb\"c\n"), "f.csv:2:2: a quote stands within a field without quotes");
  EXPECT_EQ(refusal("\"a\nb\"\nc,\"d\"e\n"),
            "f.csv:3:6: a separator is missing behind a closing quote");
  EXPECT_EQ(refusal(std::string(1 << 20, ',')), "f.csv:1:1048577: has more than 1048576 fields");
}

TEST(Csv, OfTheRelaxedDialectHasSpacesAroundFields) {
  const CsvDialect relaxed{.relaxed = true};
  EXPECT_EQ(rows_of(" a , \"b \" ,3\" disk, \n  \n", relaxed),
            (Rows{{"a", "b ", "3\" disk", ""}, {}}));
  EXPECT_EQ(refusal("\"a\" b", relaxed),
            "f.csv:1:5: a separator is missing behind a closing quote");
}

TEST(Csv, TableHasAsManyFieldsInEachRowAsInItsHeader) {
  const CsvTable table = read_csv("a,b\n\n1,2\n", "f.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.rows, (Rows{{"1", "2"}}));
  EXPECT_EQ(table.lines, std::vector<std::size_t>{3});
  EXPECT_EQ(table.index_of("b"), 1u);
  EXPECT_EQ(table.index_of("c"), 2u);
  EXPECT_TRUE(read_csv("", "f.csv").columns.empty());
  try {
    read_csv("a,b\n1,2\n3\n", "f.csv");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "f.csv:3:1: has 1 field, but the header has 2");
  }
}

TEST(Parsed, IsANumberThatTheWholeTextSays) {
  EXPECT_EQ(parsed<int>("-12"), -12);
  EXPECT_EQ(parsed<double>("1e-3"), 1e-3);
  EXPECT_EQ(parsed<double>("inf"), std::numeric_limits<double>::infinity());
  for (const char* text : {"", " 1", "1 ", "+1", "1.5", "99999999999", "x"})
    EXPECT_FALSE(parsed<int>(text)) << text;
}

}  // namespace
}  // namespace pipewright
