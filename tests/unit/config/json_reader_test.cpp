// SPDX-License-Identifier: Apache-2.0
#include "core/config/json.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

/// What reading the text throws, which is about data.
std::string fault_of(const std::string& text) {
  try {
    parse_json(text, "run.json");
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Data ? error.what() : "another kind";
  }
  return "nothing";
}

TEST(JsonReader, ReadsWhatWeWrite) {
  const std::string text =
      R"({"state":"done","seed":7,"seconds":0.5,"plugins":[],"nested":{"a":[1,2.0,null,true]},"µ":"\"\n"})";
  const Value value = parse_json(text, "run.json");
  EXPECT_EQ(value, parse_yaml(text, "run.json"));
  EXPECT_EQ(to_json(value), to_json(parse_yaml(text, "run.json")));
}

TEST(JsonReader, WholeNumbersBeyond64BitsAreNumbers) {
  EXPECT_TRUE(parse_json("9223372036854775807", "x").is(Value::Kind::Integer));
  EXPECT_TRUE(parse_json("9223372036854775808", "x").is(Value::Kind::Number));
}

TEST(JsonReader, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(fault_of(R"({"state": "do)"), "run.json: is no JSON at byte 14");
  EXPECT_EQ(fault_of(""), "run.json: is no JSON at byte 1");
  EXPECT_EQ(fault_of("{} {}"), "run.json: is no JSON at byte 4");
}

TEST(JsonReader, AKeyTwiceInOneMappingIsRefused) {
  EXPECT_EQ(fault_of(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "run.json: has the key 'a' twice");
  EXPECT_EQ(fault_of(R"([{"a": 1}, {"a": 2}])"), "nothing");
}

TEST(JsonReader, HostileDepthIsRefused) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(fault_of(deep), "run.json: nests deeper than 100 levels");
}

}  // namespace
}  // namespace pipewright
