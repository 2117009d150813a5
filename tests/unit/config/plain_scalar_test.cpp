// SPDX-License-Identifier: Apache-2.0
#include "core/config/plain_scalar.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

std::string refusal(const std::string& text) {
  return read_plain_scalar(text).refusal;
}
Value value(const std::string& text) {
  return read_plain_scalar(text).value;
}

TEST(PlainScalar, OnlyTrueAndFalseAreFlags) {
  EXPECT_EQ(value("true"), Value::of(true));
  EXPECT_EQ(value("false"), Value::of(false));
  for (const char* word : {"yes", "Yes", "on", "ON", "True", "TRUE"})
    EXPECT_NE(refusal(word).find("write true"), std::string::npos) << word;
  for (const char* word : {"no", "No", "off", "OFF", "False", "FALSE"})
    EXPECT_NE(refusal(word).find("write false"), std::string::npos) << word;
}

TEST(PlainScalar, ReadsNumbersAsJsonDoesAndExponentsWithoutAPoint) {
  EXPECT_EQ(value("0"), Value::of(0));
  EXPECT_EQ(value("-12"), Value::of(-12));
  EXPECT_EQ(value("1e-3"), Value::of(0.001));
  EXPECT_EQ(value("5.0E+2"), Value::of(500.0));
  EXPECT_EQ(value("9223372036854775807"), Value::of(std::int64_t{9223372036854775807}));
  EXPECT_EQ(value("5e-324"), Value::of(5e-324));
}

TEST(PlainScalar, RefusesOtherSpellingsWithTheOneMeant) {
  const std::pair<const char*, const char*> spellings[] = {
      {"010", "10"},     {"-007", "-7"},
      {"0x10", "16"},    {"-0xff", "-255"},
      {"0o17", "15"},    {"0b101", "5"},
      {"1_000", "1000"}, {"1_0.5_0", "10.50"},
      {".5", "0.5"},     {"5.", "5.0"},
      {"+5", "5"},       {"-.5e3", "-0.5e3"},
      {"00.1", "0.1"},   {"0xFFFFFFFFFFFFFFFFFF", "it in decimal digits"}};
  for (const auto& [text, meant] : spellings)
    EXPECT_NE(refusal(text).find(concat("write ", meant, ", or \"", text, "\" in quotes")),
              std::string::npos)
        << text << ": " << refusal(text);
}

TEST(PlainScalar, RefusesWhatIsNotFiniteOrDoesNotFit) {
  for (const char* text : {".inf", "-.Inf", "+.INF", ".nan", ".NaN", "NaN", "inf", "-Infinity"})
    EXPECT_NE(refusal(text).find("is not a finite number"), std::string::npos) << text;
  EXPECT_EQ(refusal("1e999"), "'1e999' is beyond the range of double precision numbers");
  EXPECT_EQ(refusal("1e-999999999999"),
            "'1e-999999999999' is beyond the range of double precision numbers");
  EXPECT_EQ(refusal("9223372036854775808"),
            "'9223372036854775808' does not fit a whole number of 64 bits");
}

TEST(PlainScalar, TakesEverythingElseForText) {
  for (const char* text : {"1F1B", "2BW", "1.2.3", "cuda:0", "e5", "-", ".", "0x", "1e", "12e+",
                           "2024-01-01", "_1", "y", "n", "nano", "information", "1,000"}) {
    EXPECT_EQ(refusal(text), "") << text;
    EXPECT_EQ(value(text), Value::of(text)) << text;
  }
}

TEST(ExactInteger, JudgesByTheDigits) {
  EXPECT_EQ(exact_integer("1e3"), 1000);
  EXPECT_EQ(exact_integer("2.50e1"), 25);
  EXPECT_EQ(exact_integer("-4.0"), -4);
  EXPECT_EQ(exact_integer("0e999999999999999999999"), 0);
  EXPECT_EQ(exact_integer("9007199254740993.0"), 9007199254740993);
  EXPECT_EQ(exact_integer("1e18"), 1000000000000000000);
  EXPECT_EQ(exact_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
}

TEST(ExactInteger, RefusesFractionsAndWhatDoesNotFit) {
  for (const char* text : {"0.5", "25e-1", "4.9999999999999999999", "1e19", "9223372036854775808",
                           "1e99999999999999999999", "1e-99999999999999999999", "abc", ""})
    EXPECT_EQ(exact_integer(text), std::nullopt) << text;
}

}  // namespace
}  // namespace pipewright
