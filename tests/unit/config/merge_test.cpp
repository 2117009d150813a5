// SPDX-License-Identifier: Apache-2.0
#include "core/config/merge.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

Value read(const std::string& text) {
  return parse_yaml(text, "f.yaml");
}

std::string merged_text(const std::string& base, const std::string& over) {
  return to_json(merged(read(base), read(over)));
}

/// The document after setting `key`, or the complaint.
std::string set_text(const std::string& document, const std::string& key,
                     const std::string& value) {
  Value changed = read(document);
  Problems problems;
  set_path(changed, key, parse_scalar(value, "--set " + key), problems);
  return problems.empty() ? to_json(changed) : problems.errors().front().what();
}

TEST(Merged, KeysMergeAndTheLaterWins) {
  EXPECT_EQ(merged_text("{a: 1, b: {c: 2, d: 3}}", "{b: {d: 4, e: 5}, f: 6}"),
            R"({"a":1,"b":{"c":2,"d":4,"e":5},"f":6})");
}

TEST(Merged, AMappingThatGivesNameReplacesTheOldOne) {
  EXPECT_EQ(merged_text("{scheme: {name: spectrain, version: 2}}", "{scheme: {name: pipedream}}"),
            R"({"scheme":{"name":"pipedream"}})");
  EXPECT_EQ(merged_text("{name: a, b: 1}", "{name: c}"), R"({"name":"c"})");
}

TEST(Merged, ListsAndScalarsAreReplaced) {
  EXPECT_EQ(merged_text("{a: [1, 2], b: {c: 1}, d: 1}", "{a: [3], b: 2, d: {e: 1}}"),
            R"({"a":[3],"b":2,"d":{"e":1}})");
}

TEST(Merged, WholeDocumentsMergeWhateverTheirName) {
  EXPECT_EQ(to_json(merged_keys(read("{name: a, b: 1}"), read("{name: c}"))),
            R"({"name":"c","b":1})");
}

TEST(SetPath, SetsWhatStandsBelowDots) {
  EXPECT_EQ(set_text("{pipeline: {stages: 2, threads: 1}}", "pipeline.stages", "4"),
            R"({"pipeline":{"stages":4,"threads":1}})");
  EXPECT_EQ(set_text("{}", "a.b.c", "1"), R"({"a":{"b":{"c":1}}})");
  EXPECT_EQ(set_text("a:", "a.b", "1"), R"({"a":{"b":1}})");
}

TEST(SetPath, ReplacesBySectionsAndRenamesByLeaves) {
  EXPECT_EQ(set_text("{model: {name: a, classes: 10}}", "model", "{name: b}"),
            R"({"model":{"name":"b"}})");
  EXPECT_EQ(set_text("{model: {name: a, classes: 10}}", "model.name", "b"),
            R"({"model":{"name":"b","classes":10}})");
  EXPECT_EQ(set_text("{model: {name: a, classes: 10}}", "model", "{classes: 5}"),
            R"({"model":{"name":"a","classes":5}})");
}

TEST(SetPath, KeepsKeysOfSweepsWhole) {
  EXPECT_EQ(set_text("{}", "sweep.grid.train.seed", "[1, 2]"),
            R"({"sweep":{"grid":{"train.seed":[1,2]}}})");
}

TEST(SetPath, DoesNotStepIntoWhatIsNoMapping) {
  EXPECT_EQ(set_text("{a: {b: 3}}", "a.b.c", "1"),
            "--set: 'a.b.c' cannot be set: a.b is 3, not a mapping");
  for (const char* key : {"a.1", "a.x", "a.-1"})
    EXPECT_EQ(set_text("{a: [1]}", key, "1"),
              concat("--set: '", std::string_view(key),
                     "' cannot be set: a is a list of 1, which are counted from 0"));
}

TEST(SetPath, CountsElementsOfListsFromZero) {
  EXPECT_EQ(set_text("{a: [{b: 1}, {b: 2}]}", "a.1.b", "3"), R"({"a":[{"b":1},{"b":3}]})");
  EXPECT_EQ(set_text("{a: [1, 2]}", "a.0", "3"), R"({"a":[3,2]})");
}

TEST(SetPath, RefusesKeysThatAreNotNamesJoinedByDots) {
  for (const char* key : {"", ".", "a..b", "a.", ".a", "a. .b"})
    EXPECT_NE(set_text("{}", key, "1").find("is not names joined by dots"), std::string::npos)
        << key;
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_NE(set_text("{}", deep, "1").find("is not names joined by dots"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
