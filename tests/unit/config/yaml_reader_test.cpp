// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/config/value.h"
#include "core/system/file.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

Value parsed(const std::string& text) {
  return parse_yaml(text, "f.yaml");
}

std::string yaml_reader_refusal(const std::string& text) {
  return error_text([&] { parsed(text); });
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(StrictYaml, ReadsEveryKindOfValue) {
  const Value value = parsed("a: true\nb: -3\nc: 0.5\nd: hello\ne: [1, x]\nf: {g: null}\n");
  EXPECT_EQ(to_json(value), R"({"a":true,"b":-3,"c":0.5,"d":"hello","e":[1,"x"],"f":{"g":null}})");
}

TEST(StrictYaml, RemembersWhereKeysAndValuesStand) {
  const Value value = parsed("a:\n  b: [1,\n      {c: 2}]\n");
  EXPECT_EQ(value.find_path("a.b.1.c")->place.text(), "f.yaml:3:11");
  EXPECT_EQ(value.find_path("a.b.1.c")->key_place().text(), "f.yaml:3:8");
  EXPECT_EQ(value.find_path("a.b")->place.text(), "f.yaml:2:6");
  EXPECT_EQ(value.find_path("a.b")->key_place().text(), "f.yaml:2:3");
}

TEST(StrictYaml, CountsColumnsInCharacters) {
  EXPECT_EQ(parsed("{é: x, ü: 1}").find("ü")->place.text(), "f.yaml:1:11");
}

TEST(StrictYaml, PlacesAnAbsentValueAtItsKey) {
  const Value value = parsed("a:\n\n\nb: 1\n");
  EXPECT_TRUE(value.find("a")->is(Value::Kind::Null));
  EXPECT_EQ(value.find("a")->place.text(), "f.yaml:1:1");
}

TEST(StrictYaml, TakesAKeyWithoutValueForNothing) {
  for (const char* text : {"a:", "a: ", "a:\n", "a: # comment\n", "{a: }", "{a: , b: 1}", "\"a\":"})
    EXPECT_TRUE(parsed(text).find("a")->is(Value::Kind::Null)) << text;
}

TEST(StrictYaml, ReadsJsonAlsoWhenTabsIndentIt) {
  EXPECT_EQ(to_json(parsed("{\n\t\"a\": 1,\n\t\"b\":[true,\n\t\tnull]\n}\n")),
            R"({"a":1,"b":[true,null]})");
}

TEST(StrictYaml, IgnoresByteOrderMarkAndCarriageReturns) {
  const Value value = parsed(
      "\xEF\xBB\xBF"
      "a: b\r\nc: d\r\n");
  EXPECT_EQ(to_json(value), R"({"a":"b","c":"d"})");
  EXPECT_EQ(value.find("a")->place.text(), "f.yaml:1:4");
  EXPECT_EQ(value.find("c")->place.text(), "f.yaml:2:4");
}

TEST(StrictYaml, AnEmptyFileIsNothing) {
  EXPECT_TRUE(parsed("").is(Value::Kind::Null));
  EXPECT_TRUE(parsed("# only a comment\n").is(Value::Kind::Null));
}

TEST(StrictYaml, RefusesDuplicateKeysWithBothPlaces) {
  EXPECT_EQ(
      yaml_reader_refusal("a:\n  b: 1\n  c: 2\n  b: 3\n"),
      "f.yaml:4:3: the key 'b' is given twice, first in line 2, column 3; remove one of them");
  EXPECT_EQ(
      yaml_reader_refusal("{a: 1, \"a\": 2}"),
      "f.yaml:1:8: the key 'a' is given twice, first in line 1, column 2; remove one of them");
}

TEST(StrictYaml, RefusesMergeKeys) {
  EXPECT_EQ(
      yaml_reader_refusal("a: &x {b: 1}\nc:\n  <<: *x\n"),
      "f.yaml:3:3: merge keys ('<<') are not supported; write the keys out, or use 'extends'");
}

TEST(StrictYaml, CopiesAliasedValues) {
  const Value value = parsed("a: &x {b: [1, 2]}\nc: *x\n");
  EXPECT_EQ(*value.find("a"), *value.find("c"));
  EXPECT_EQ(value.find("c")->place.text(), "f.yaml:2:4");
}

TEST(StrictYaml, RefusesAliasesOfWhatStandsAroundThem) {
  EXPECT_EQ(yaml_reader_refusal("a: &x [*x]"),
            "f.yaml:1:8: this alias (*name) stands within the value that it names (&name)");
  EXPECT_EQ(
      yaml_reader_refusal("a: *x"),
      "f.yaml:1:4: an alias such as *name needs an anchor &name before it; put a text that begins "
      "with '*' in quotes");
  EXPECT_EQ(yaml_reader_refusal("a: &x b\n*x : c"),
            "f.yaml:2:1: a key cannot be an alias (*name); write the key itself");
}

TEST(StrictYaml, RefusesAliasesThatGrowTheDocumentWithoutEnd) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = concat("*a", i - 1);
    laughs += concat("a", i, ": &a", i, " [", repeated(before + ", ", 9), before, "]\n");
  }
  EXPECT_NE(yaml_reader_refusal(laughs).find("beyond 100,000 nodes"), std::string::npos);
  // Few nodes, but each of them huge.
  const std::string huge =
      "a: &x " + std::string(60'000, 'x') + "\nb: [" + repeated("*x, ", 1000) + "*x]\n";
  EXPECT_NE(yaml_reader_refusal(huge).find("16 MiB"), std::string::npos);
}

TEST(StrictYaml, RefusesNestingDeeperThanAHundred) {
  EXPECT_EQ(yaml_reader_refusal(std::string(100, '[') + "1" + std::string(100, ']')), "no error");
  EXPECT_EQ(yaml_reader_refusal(std::string(101, '[') + "1" + std::string(101, ']')),
            "f.yaml:1:101: the document nests deeper than 100 levels");
  EXPECT_NE(yaml_reader_refusal(std::string(300'000, '[')).find("nests deeper"), std::string::npos);
  EXPECT_NE(yaml_reader_refusal(repeated("- ", 100'000)).find("nests deeper"), std::string::npos);
  EXPECT_NE(yaml_reader_refusal(repeated("? ", 100'000)).find("nests deeper"), std::string::npos);
}

TEST(StrictYaml, RefusesNestingThroughAliases) {
  std::string chain = "a0: &a0 [x]\n";
  for (int i = 1; i < 120; ++i) chain += concat("a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_NE(yaml_reader_refusal(chain).find("the alias nests deeper than 100 levels"),
            std::string::npos);
}

TEST(StrictYaml, RefusesTags) {
  for (const char* text : {"a: !!str 3", "a: ! 3", "a: !own 3", "a: !!map {b: 1}", "a: ! \"3\""})
    EXPECT_EQ(
        yaml_reader_refusal(text),
        "f.yaml:1:4: tags ('!', '!!str', …) are not supported; remove the tag, and put a text that "
        "begins with '!' in quotes")
        << text;
}

TEST(StrictYaml, RefusesASecondDocument) {
  const std::string message =
      ": a second document begins here; a file holds one, so remove one of them";
  EXPECT_EQ(yaml_reader_refusal("a: 1\n---\nb: 2\n"), "f.yaml:2:1" + message);
  EXPECT_EQ(yaml_reader_refusal("a: 1\n...\nb: 2\n"), "f.yaml:3:1" + message);
  EXPECT_EQ(yaml_reader_refusal("---\na: 1\n...\n# the end\n"), "no error");
}

TEST(StrictYaml, RefusesDirectives) {
  EXPECT_EQ(yaml_reader_refusal("%YAML 1.2\n---\na: 1\n"),
            "f.yaml:1:1: directives such as '%YAML' are not supported; remove the line");
  EXPECT_NE(yaml_reader_refusal("a: 1\n%b: 2\n"), "no error");
}

TEST(StrictYaml, RefusesKeysThatAreNotTexts) {
  EXPECT_EQ(yaml_reader_refusal("1: a"),
            "f.yaml:1:1: the key '1' is not a text; write \"1\" in quotes");
  EXPECT_EQ(yaml_reader_refusal("on: a"),
            "f.yaml:1:1: the key 'on' is not a text; write \"on\" in quotes");
  EXPECT_EQ(yaml_reader_refusal("null: a"), "f.yaml:1:1: a key is empty; give it a name");
  EXPECT_EQ(yaml_reader_refusal("? [a]\n: b"), "f.yaml:1:3: a key is a list; expected a text");
  EXPECT_EQ(yaml_reader_refusal("{{a: b}: c}"), "f.yaml:1:2: a key is a mapping; expected a text");
  EXPECT_EQ(yaml_reader_refusal("\"1\": a"), "no error");
}

TEST(StrictYaml, RefusesKeysLongerThanTheParserReads) {
  EXPECT_EQ(yaml_reader_refusal(std::string(128, 'k') + ": 1"), "no error");
  EXPECT_EQ(yaml_reader_refusal(std::string(129, 'k') + ": 1"),
            "f.yaml:1:1: a key has 129 bytes; at most 128 are read");
}

TEST(StrictYaml, RefusesWhatStandsAlone) {
  const std::string message = "' stands alone; expected 'key: value', with a space after ':'";
  EXPECT_EQ(yaml_reader_refusal("a: 1\nb\n"), "f.yaml:2:1: 'b" + message);
  EXPECT_EQ(yaml_reader_refusal("a: 1\nb"), "f.yaml:2:1: 'b" + message);
  EXPECT_EQ(yaml_reader_refusal("{a:1}"), "f.yaml:1:2: 'a:1" + message);
  EXPECT_EQ(yaml_reader_refusal("[1,,2]"),
            "f.yaml:1:4: an entry of the list is empty; remove the extra comma");
  EXPECT_EQ(yaml_reader_refusal("[1, 2,]"), "no error");
}

TEST(StrictYaml, RefusesWhatYamlCppWouldDropQuietly) {
  const std::string message =
      ": this does not belong to what stands before it; check indentation and brackets";
  EXPECT_EQ(yaml_reader_refusal("- a\nb: c\n"), "f.yaml:2:1" + message);
  EXPECT_EQ(yaml_reader_refusal("\"a\" \"b\"\n"), "f.yaml:1:5" + message);
}

TEST(StrictYaml, ExplainsFaultsOfSyntax) {
  EXPECT_EQ(yaml_reader_refusal("a:\n  b: 1\n c: 2\n"),
            "f.yaml:3:2: expected 'key: value' here; is this line indented as the one before, and "
            "has that "
            "one a space after ':'?");
  EXPECT_EQ(
      yaml_reader_refusal("a: b: c"),
      "f.yaml:1:5: a second ':' follows the one that ends the key; put a text that holds ': ' in "
      "quotes, or begin a new line");
  EXPECT_EQ(yaml_reader_refusal("[a, b"), "f.yaml:1:1: this '[' is never closed; add ']'");
  EXPECT_EQ(yaml_reader_refusal("a: 'x"),
            "f.yaml:1:6: a quote is opened here and never closed; add the closing one");
  EXPECT_EQ(yaml_reader_refusal("a: @x"),
            "f.yaml:1:4: a text cannot begin with this character; put it in quotes");
}

TEST(StrictYaml, NamesSlipsOfTheHandWhereTheyAre) {
  EXPECT_EQ(yaml_reader_refusal("a: {b: [64, 10}\nc: 1\n"),
            "f.yaml:1:15: '}' stands here while the '[' of line 1, column 8 is open; close that "
            "with ']' first");
  EXPECT_EQ(yaml_reader_refusal("a: {b: it's}\nc: {d: 1\ne: {f: 1}\n"),
            "f.yaml:2:4: this '{' is never closed; add '}'");
  EXPECT_EQ(yaml_reader_refusal("a:3\nb: 1\n"),
            "f.yaml:1:2: a space is missing after ':'; write 'a: 3'");
  EXPECT_EQ(yaml_reader_refusal("c:\n  a:3\n  # so\n  b: 1\n"),
            "f.yaml:2:4: a space is missing after ':'; write 'a: 3'");
  EXPECT_EQ(yaml_reader_refusal("c:\n  a: 3\n   b: 1\n"),
            "f.yaml:3:4: this line is indented deeper than the one before, whose key has its value "
            "already; indent both alike");
  EXPECT_EQ(yaml_reader_refusal("{lr: 0,1}"),
            "f.yaml:1:8: the key '1' is not a text; a comma ends the value before it, so write 0.1 "
            "with a point");
  EXPECT_EQ(yaml_reader_refusal("{n: 1,000}"),
            "f.yaml:1:7: the key '000' is not a text; a comma ends the value before it, so write "
            "1000 without a comma");
}

TEST(StrictYaml, RefusesBytesThatAreNotUtf8) {
  for (const char* bytes : {"\xE9t\xE9", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                            "\xF4\x90\x80\x80", "\xFF", "\xE2\x82"})
    EXPECT_NE(yaml_reader_refusal(concat("a: ", bytes)).find("f.yaml:1:4: the byte 0x"),
              std::string::npos);
  EXPECT_EQ(yaml_reader_refusal("a: é\nb: \xE9\n"),
            "f.yaml:2:4: the byte 0xE9 is not UTF-8; save the file as UTF-8");
}

TEST(StrictYaml, RefusesControlCharacters) {
  EXPECT_EQ(yaml_reader_refusal(std::string("a: \0b", 5)),
            "f.yaml:1:4: the control character 0x00 cannot stand in a file; remove it");
  EXPECT_NE(yaml_reader_refusal("a: \x1b[31m").find("0x1B"), std::string::npos);
  EXPECT_NE(yaml_reader_refusal("a: b\rc: d").find("0x0D"), std::string::npos);
  EXPECT_NE(yaml_reader_refusal("a: \xC2\x9B").find("0x9B"), std::string::npos);
  EXPECT_EQ(yaml_reader_refusal("a: \"\\0\""),
            "f.yaml:1:4: the text holds a NUL character; remove it");
}

TEST(StrictYaml, ReportsAllFaultsInOrderOfPlace) {
  EXPECT_EQ(
      yaml_reader_refusal("a: 010\nb: {c: .5, c: 1}\nd: yes\n"),
      "f.yaml:1:4: '010' has leading zeros; write 10, or \"010\" in quotes for the text\n"
      "f.yaml:2:8: '.5' has no digit on one side of the point; write 0.5, or \".5\" in quotes "
      "for the text\n"
      "f.yaml:2:12: the key 'c' is given twice, first in line 2, column 5; remove one of "
      "them\n"
      "f.yaml:3:4: 'yes' is not how a flag is written; write true, or \"yes\" in quotes for "
      "the text");
}

TEST(StrictYaml, ReportsFaultsBeforeABreakInSyntaxToo) {
  const std::string message = yaml_reader_refusal("a: yes\nb: [\n");
  EXPECT_NE(message.find("f.yaml:1:4: 'yes'"), std::string::npos);
  EXPECT_NE(message.find("is never closed"), std::string::npos);
}

TEST(StrictYaml, ReadsLargeFilesInLinearTime) {
  // Minutes if anything were quadratic; the test's own timeout notices.
  EXPECT_EQ(yaml_reader_refusal("[" + repeated("é,", 90'000) + "1]"), "no error");
  EXPECT_NE(yaml_reader_refusal(repeated("- yes\n", 90'000)).find("and 89,900 more problems"),
            std::string::npos);
  std::string keys;
  for (int i = 0; i < 10'000; ++i) keys += concat("k", i, ": 1\n");
  EXPECT_EQ(yaml_reader_refusal(keys), "no error");
  EXPECT_EQ(yaml_reader_refusal(keys + "one: 1\n"),
            "f.yaml:10001:1: a mapping has more than 10,000 keys");
}

TEST(StrictYaml, RefusesAQuoteThatTheFileEndsIn) {
  EXPECT_EQ(yaml_reader_refusal("a: \"b\n"),
            "f.yaml:1:4: a quote is opened here and never closed; add the closing one");
  EXPECT_EQ(yaml_reader_refusal("a: 'b\n"),
            "f.yaml:1:4: a quote is opened here and never closed; add the closing one");
  EXPECT_EQ(yaml_reader_refusal("a: 'it''s\n"),
            "f.yaml:1:4: a quote is opened here and never closed; add the closing one");
  EXPECT_EQ(yaml_reader_refusal("a: \"b\\\"\n"),
            "f.yaml:1:4: a quote is opened here and never closed; add the closing one");
  EXPECT_EQ(yaml_reader_refusal("a: 'it''s'\nb: \"\\\"\"\n'c': \"d\""), "no error");
}

TEST(StrictYaml, RefusesWhatWouldTakeMoreMemoryThanExperimentsNeed) {
  EXPECT_EQ(yaml_reader_refusal("[" + repeated("1,\n", 100'000) + "1]"),
            "f.yaml:100000:1: the document has more than 100,000 values");
  EXPECT_EQ(yaml_reader_refusal("a: " + std::string(65'537, 'x')),
            "f.yaml:1:4: a text has 65,537 bytes; at most 65,536 are read");
  EXPECT_EQ(yaml_reader_refusal(std::string(1'000'000, '[')),
            "f.yaml:1:1001: the document nests deeper than 1000 levels");
  EXPECT_NE(yaml_reader_refusal("[" + repeated("[]", 400'000)).find("more than 300000 brackets"),
            std::string::npos);
  EXPECT_EQ(yaml_reader_refusal("a: '" + std::string(2000, '[') + "'"),
            "f.yaml:1:1005: the document nests deeper than 1000 levels");  // for a price
}

TEST(LoadYaml, SaysWhichFileCannotBeRead) {
  EXPECT_EQ(error_text([] { load_yaml("no/such/file.yaml"); }),
            "no/such/file.yaml: cannot open: No such file or directory");
  const auto path =
      std::filesystem::path(testing::TempDir()) / concat("pipewright_large_", getpid(), ".yaml");
  write_file(path, std::string((2 << 20) + 1, '#'));
  EXPECT_NE(error_text([&] { load_yaml(path); }).find("at most 2097152 are read"),
            std::string::npos);
  std::filesystem::remove(path);
}

TEST(ParseScalar, ReadsWhatSetGives) {
  EXPECT_EQ(parse_scalar("3", "--set a"), Value::of(3));
  EXPECT_EQ(parse_scalar("~/data/x", "--set a"), Value::of("~/data/x"));
  EXPECT_EQ(to_json(parse_scalar("[1, {b: c}]", "--set a")), R"([1,{"b":"c"}])");
  EXPECT_EQ(parse_scalar("", "--set a"), Value::of(""));
  EXPECT_EQ(parse_scalar("\"a #b\"", "--set a"), Value::of("a #b"));
}

TEST(ParseScalar, NamesTheOptionInsteadOfALine) {
  EXPECT_EQ(parse_scalar("{b: 3}", "--set a").find("b")->place.text(), "--set a");
  EXPECT_EQ(error_text([] { parse_scalar("yes", "--set a"); }),
            "--set a: 'yes' is not how a flag is written; write true, or \"yes\" in quotes for the "
            "text");
  EXPECT_EQ(error_text([] { parse_scalar("run #3", "--set a"); }),
            "--set a: '#' begins a comment; put the value in quotes");
}

}  // namespace
}  // namespace pipewright
