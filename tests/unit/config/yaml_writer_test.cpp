// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/base/random.h"
#include "core/config/json.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

Value read_back(const std::string& text) {
  return parse_yaml(text, "f.yaml");
}

TEST(ToYaml, WritesAsAPersonWould) {
  const std::string text =
      "name: spectrain-vgg16\n"
      "dataset:\n"
      "  root: ~/data/cifar-10\n"
      "  augment: true\n"
      "pipeline:\n"
      "  balance: [4, 4, 4, 4]\n"
      "  device: [cuda:0, cuda:1]\n"
      "  placement: []\n"
      "optimizer:\n"
      "  lr: 0.01\n"
      "  weight_decay: 0.0005\n"
      "  epsilon: 1.0e-8\n"
      "  limit: 1.0e+22\n"
      "sweep:\n"
      "  points:\n"
      "    - {label: PD4, scheme: {name: pipedream}, pipeline.stages: 4}\n"
      "    - {label: \"4\", scheme: {}}\n";
  EXPECT_EQ(to_yaml(read_back(text)), text);
}

TEST(ToYaml, BreaksWhatIsTooLongForALine) {
  Value list = Value::sequence();
  for (int i = 0; i < 40; ++i) list.items.push_back(Value::of(1000 + i));
  Value mapping = Value::mapping();
  mapping.at_or_add("long") = list;
  const std::string text = to_yaml(mapping);
  EXPECT_TRUE(text.starts_with("long:\n  - 1000\n  - 1001\n"));
  EXPECT_EQ(read_back(text), mapping);
}

TEST(ToYaml, QuotesTextsThatWouldBeReadAsSomethingElse) {
  for (const char* text :
       {"",     "3",    "0.5",    "010",    "true",   "yes",        "null",     "~",
        ".inf", "a: b", "a #b",   "- a",    "[a]",    "{a}",        "*a",       "&a",
        "!a",   "%a",   "@a",     "`a`",    "'a'",    "a:",         " a",       "a ",
        "a,b",  "?",    "---",    "...",    "... a",  "2024-01-01", "12:30:00", "a\nb",
        "a\tb", "\x01", "\u0085", "\u2028", "\uFEFF", "=",          "<<"}) {
    const std::string written = to_yaml(Value::of(text));
    EXPECT_TRUE(written.starts_with('"')) << written;
    EXPECT_EQ(read_back(written), Value::of(text)) << written;
  }
}

TEST(ToYaml, LeavesOrdinaryTextsPlain) {
  for (const char* text : {"cifar10", "~/data/x", "/abs/a b.txt", "cuda:0", "1F1B", "a-b_c.d",
                           "Größe", "n", "./x", "http://x.y/z"})
    EXPECT_EQ(to_yaml(Value::of(text)), concat(text, "\n"));
}

TEST(ToYaml, KeepsEveryBitOfANumber) {
  const RandomStream random(7, "to_yaml numbers");
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t bits =
        (static_cast<std::uint64_t>(random.bits(2 * i)) << 32) | random.bits(2 * i + 1);
    const auto number = std::bit_cast<double>(bits);
    if (!std::isfinite(number)) continue;
    const Value back = read_back(to_yaml(Value::of(number)));
    ASSERT_EQ(back.kind, Value::Kind::Number) << to_yaml(Value::of(number));
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back.number), bits) << to_yaml(Value::of(number));
  }
  for (const double number : {0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 0.1, 1e7, 123456.0})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read_back(to_yaml(Value::of(number))).number),
              std::bit_cast<std::uint64_t>(number));
}

/// Draws values of every shape, with the texts that are hardest to write.
class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : random_(seed, "values") {}

  Value draw(int depth = 0) {
    switch (below(depth > 4 ? 5 : 7)) {
      case 0: return {};
      case 1: return Value::of(below(2) == 1);
      case 2: return Value::of(static_cast<std::int64_t>(below(2000)) - 1000);
      case 3:
        return Value::of(random_.normal(counter_++) *
                         std::pow(10.0, static_cast<double>(below(40)) - 20));
      case 4: return Value::of(text());
      case 5: {
        Value list = Value::sequence();
        for (std::uint64_t n = below(6); n > 0; --n) list.items.push_back(draw(depth + 1));
        return list;
      }
      default: {
        Value mapping = Value::mapping();
        for (std::uint64_t n = below(6); n > 0; --n) mapping.at_or_add(text()) = draw(depth + 1);
        return mapping;
      }
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_.below(counter_++, n); }

  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a",    "Z",    "0",      "9",      " ",      ":",    "#",    "-", "?",  ",", "[", "]",
        "{",    "}",    "&",      "*",      "!",      "|",    ">",    "'", "\"", "%", "@", "`",
        "\\",   "\n",   "\t",     ".",      "_",      "/",    "~",    "=", "<",  "é", "→", "😀",
        "\x01", "\x7f", "\u0085", "\u2028", "\uFEFF", "true", "null", "e", "x"};
    std::string out;
    for (std::uint64_t n = below(8); n > 0; --n) out += kPieces[below(kPieces.size())];
    return out;
  }

  RandomStream random_;
  std::uint64_t counter_ = 0;
};

TEST(ToYaml, IsReadBackAsTheSameValue) {
  RandomValues values(11);
  for (int i = 0; i < 3000; ++i) {
    const Value value = values.draw();
    const std::string text = to_yaml(value);
    ASSERT_NO_THROW({ ASSERT_EQ(read_back(text), value) << text; }) << text;
    ASSERT_EQ(to_yaml(read_back(text)), text);
  }
}

TEST(ToJson, IsReadBackAsTheSameValue) {
  RandomValues values(13);
  for (int i = 0; i < 3000; ++i) {
    const Value value = values.draw();
    const std::string text = to_json(value);
    ASSERT_NO_THROW({ ASSERT_EQ(parse_json(text, "x.json"), value) << text; }) << text;
  }
}

// One such byte makes a whole file of results unreadable.
TEST(ToJson, HasNoByteThatIsNotUtf8) {
  EXPECT_EQ(to_json(Value::of("o\xffut\xe2\x82")), "\"o\ufffdut\ufffd\ufffd\"");
  EXPECT_EQ(to_yaml(Value::of("o\xffut")), "\"o\ufffdut\"\n");
}

TEST(ToJson, KeepsTheOrderOfKeysAndTheKindOfNumbers) {
  EXPECT_EQ(to_json(read_back("b: 1.0\na: [1, \"x\\ny\"]\nc: 1e-7")),
            R"({"b":1.0,"a":[1,"x\ny"],"c":1e-07})");
  EXPECT_EQ(to_json(Value::of(std::nan(""))), "null");
}

TEST(Digest, IsOfTheContentNotOfItsOrderOrPlace) {
  EXPECT_EQ(digest(read_back("a: 1\nb: {c: 2, d: 3}")),
            digest(read_back("b:\n  d: 3\n  c: 2\na: 1\n")));
  EXPECT_NE(digest(read_back("a: 1")), digest(read_back("a: 2")));
  EXPECT_NE(digest(read_back("a: 1")), digest(read_back("a: \"1\"")));
  EXPECT_NE(digest(read_back("a: [1, 2]")), digest(read_back("a: [2, 1]")));
  // Folders are named after it: it never changes.
  EXPECT_EQ(digest(read_back("a: 1")), "9c3e82dd6fcae8b1");
}

/// Digests are made of this spelling, and our YAML reader reads it.
TEST(Json, EscapesWhatYamlReadersDisagreeAbout) {
  const std::string text = "\r\x7f\u0089\u2028\u2029\ufeff\"\\é";
  const std::string json = to_json(Value::of(text));
  EXPECT_EQ(json, R"("\u000d\u007f\u0089\u2028\u2029\ufeff\"\\é")");
  EXPECT_EQ(parse_yaml(json, "text").text, text);
}

}  // namespace
}  // namespace pipewright
