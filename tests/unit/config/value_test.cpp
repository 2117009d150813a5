// SPDX-License-Identifier: Apache-2.0
#include "core/config/value.h"

#include <gtest/gtest.h>

#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

TEST(Place, NamesFileLineAndColumn) {
  EXPECT_EQ((Place{"experiment.yaml", 12, 5}.text()), "experiment.yaml:12:5");
  EXPECT_EQ((Place{"--set", 0, 0}.text()), "--set");
  EXPECT_EQ(Place().text(), "");
}

TEST(Value, FollowsDottedPathsAndNumbersIntoLists) {
  const Value value = parse_yaml("a: {b: [x, {c: 1}]}", "f.yaml");
  EXPECT_EQ(*value.find_path("a.b.1.c"), Value::of(1));
  EXPECT_EQ(*value.find_path("a.b.0"), Value::of("x"));
  for (const char* path : {"a.c", "a.b.2", "a.b.x", "a.b.-1", "a.b.0.d", "", "a."})
    EXPECT_EQ(value.find_path(path), nullptr) << path;
}

TEST(Value, AddsAFieldOnlyOnce) {
  Value value = Value::mapping();
  value.at_or_add("a") = Value::of(1);
  value.at_or_add("a") = Value::of(2);
  EXPECT_EQ(to_json(value), R"({"a":2})");
  EXPECT_THROW(Value::of(1).at_or_add("a"), Error);
}

TEST(Value, EqualityIgnoresPlacesSpellingsAndTheOrderOfKeys) {
  EXPECT_EQ(parse_yaml("{a: 1e3, b: 2}", "f"), parse_yaml("b: 2\na: 1000.0\n", "g"));
  EXPECT_NE(Value::of(1), Value::of(1.0));
  EXPECT_NE(parse_yaml("{a: 1}", "f"), parse_yaml("{b: 1}", "f"));
  EXPECT_NE(parse_yaml("{a: 1}", "f"), parse_yaml("{a: 1, b: 1}", "f"));
}

TEST(Value, IsDescribedOnOneShortLine) {
  EXPECT_EQ(Value::of("abc").described(), "the text 'abc'");
  EXPECT_EQ(Value::of(0.5).described(), "the number 0.5");
  EXPECT_EQ(Value::mapping().described(), "a mapping");
  EXPECT_EQ(Value::of("a\nb\x1b[31m").shown(), "'a\\nb\\x1b[31m'");
  EXPECT_EQ(Value::of(std::string(59, 'x') + "éyy").shown(), "'" + std::string(59, 'x') + "é…'");
}

TEST(Problems, AreReportedInOrderOfPlaceAndEachOnce) {
  Problems problems;
  problems.add({"--set a", 0, 0}, "last");
  problems.add({"f.yaml", 10, 1}, "third");
  problems.add({"f.yaml", 9, 20}, "second");
  problems.add({"f.yaml", 9, 3}, "first");
  problems.add({"f.yaml", 9, 3}, "first");
  EXPECT_EQ(error_text([&] { problems.throw_if_any(); }),
            "f.yaml:9:3: first\nf.yaml:9:20: second\nf.yaml:10:1: third\n--set a: last");
}

TEST(Problems, KeepKindAndPlaceOfASingleOne) {
  Problems problems;
  problems.throw_if_any();
  problems.add({"f.yaml", 1, 2}, "message", ErrorKind::Data);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_EQ(error.where(), "f.yaml:1:2");
    EXPECT_EQ(error.message(), "message");
  }
}

TEST(Problems, CountWhatTheyDoNotKeep) {
  Problems problems;
  for (int line = 1; line <= 250; ++line) problems.add({"f.yaml", line, 1}, "wrong");
  EXPECT_EQ(problems.errors().size(), 100U);
  EXPECT_TRUE(error_text([&] { problems.throw_if_any(); }).ends_with("… and 150 more problems"));
}

}  // namespace
}  // namespace pipewright
