// SPDX-License-Identifier: Apache-2.0
#include "core/config/schema.h"

#include <gtest/gtest.h>

#include <sstream>

namespace pipewright {
namespace {

/// Declares one option of each kind.
std::vector<OptionInfo> options_of_every_kind() {
  static Problems problems;
  Options options(nullptr, "", problems);
  Options scheme = options.section("scheme", "What happens when.");
  scheme.required_text("name", "Which scheme.");
  scheme.choice("version", {1, 2}, 1, "Prediction rule.");
  scheme.finish();
  options.flag("augment", true, "Flip and crop.");
  options.integer("epochs", 10, "Passes over the data.", kPositive);
  options.number("dropout", 0.5, "Share of values set to zero.", kFraction);
  options.choice("execution", {"serial", "threads"}, "serial", "Who runs the workers.");
  options.integers("balance", {}, "Layers per stage.", kPositive);
  options.path("root", "", "The data.");
  options.any("device", Value::of("cpu"), "One, or a list.");
  return options.declared();
}

TEST(JsonSchema, SaysWhatOptionsSay) {
  const Value schema = json_schema(options_of_every_kind());
  EXPECT_EQ(to_json(*schema.find_path("properties.scheme")),
            R"({"type":"object","properties":{)"
            R"("name":{"type":"string","description":"Which scheme."},)"
            R"("version":{"enum":[1,2],"description":"Prediction rule.","default":1}},)"
            R"("required":["name"],"additionalProperties":false,)"
            R"("description":"What happens when."})");
  EXPECT_EQ(to_json(*schema.find_path("properties.augment")),
            R"({"type":"boolean","description":"Flip and crop.","default":true})");
  EXPECT_EQ(to_json(*schema.find_path("properties.epochs")),
            R"({"type":"integer","minimum":1,"description":"Passes over the data.","default":10})");
  EXPECT_EQ(to_json(*schema.find_path("properties.dropout")),
            R"({"type":"number","minimum":0,"maximum":1,)"
            R"("description":"Share of values set to zero.","default":0.5})");
  EXPECT_EQ(to_json(*schema.find_path("properties.execution.enum")), R"(["serial","threads"])");
  EXPECT_EQ(to_json(*schema.find_path("properties.balance.items")),
            R"({"type":"integer","minimum":1})");
  EXPECT_EQ(to_json(*schema.find_path("properties.device")),
            R"({"description":"One, or a list.","default":"cpu"})");
  EXPECT_EQ(to_json(*schema.find("additionalProperties")), "false");
}

TEST(DescribeOptions, HasAParagraphForEachOption) {
  EXPECT_EQ(describe_options(options_of_every_kind()),
            "  scheme: a mapping of options\n"
            "      What happens when.\n"
            "\n"
            "  scheme.name: a text; required\n"
            "      Which scheme.\n"
            "\n"
            "  scheme.version: 1 or 2; default 1\n"
            "      Prediction rule.\n"
            "\n"
            "  augment: true or false; default true\n"
            "      Flip and crop.\n"
            "\n"
            "  epochs: a whole number of at least 1; default 10\n"
            "      Passes over the data.\n"
            "\n"
            "  dropout: a number from 0 to 1; default 0.5\n"
            "      Share of values set to zero.\n"
            "\n"
            "  execution: serial or threads; default serial\n"
            "      Who runs the workers.\n"
            "\n"
            "  balance: a list of whole numbers of at least 1; default []\n"
            "      Layers per stage.\n"
            "\n"
            "  root: the path of a file or folder; default empty\n"
            "      The data.\n"
            "\n"
            "  device: any value; default cpu\n"
            "      One, or a list.\n");
}

TEST(DescribeOptions, FitsAHundredColumns) {
  OptionInfo info;
  info.name = "long";
  info.type = OptionInfo::Type::Text;
  info.required = true;
  for (int i = 0; i < 80; ++i) info.help += "Größe ";
  std::istringstream lines(describe_options({info}));
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    std::size_t characters = 0;
    for (const char byte : line) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    longest = std::max(longest, characters);
  }
  EXPECT_LE(longest, 100U);
  EXPECT_GE(longest, 95U);
}

}  // namespace
}  // namespace pipewright
