// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/byte_bpe.h"

#include "datasets/texts/roberta_tokens.h"
#include "tests/unit/datasets/bpe_fixture.h"

namespace pipewright {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(Pattern, LowersEveryAlphabet) {
  EXPECT_EQ(lower_case("ÀÉÎ Straße ПРИВЕТ ΑΒΓ don'T 3A"), "àéî straße привет αβγ don't 3a");
}

class SmallByteBpe : public ::testing::Test {
 protected:
  SmallByteBpe() { fixtures::put_byte_bpe(folder_); }
  std::string refusal() {
    return error_of([this] { RobertaTokens tokens(folder_.text()); });
  }
  std::string refusal(const std::string& name, const std::string& content) {
    const std::string before = read_file(folder_ / name);
    put(folder_ / name, content);
    const std::string error = refusal();
    put(folder_ / name, before);
    EXPECT_TRUE(contains(error, name));
    return error;
  }
  fixtures::TemporaryFolder folder_;
};

// 256 single bytes; then "lo" 256, "low" 257, " low" 258, by the merges l-o, lo-w and blank-low.
TEST_F(SmallByteBpe, MergesWhatWasLearntFirst) {
  const ByteBpe bpe(folder_.text());
  EXPECT_EQ(bpe.size(), 259);
  EXPECT_EQ(bpe.encode("low low"), (Tokens{257, 258}));
  EXPECT_EQ(bpe.encode("lolo  low"), (Tokens{256, 256, ' ', 258}));
  EXPECT_EQ(bpe.encode(""), Tokens{});
  EXPECT_EQ(bpe.decode(bpe.encode("\u20ac low\n\n")), "\u20ac low\n\n");
}

TEST_F(SmallByteBpe, NamesWhatIsDamaged) {
  EXPECT_EQ(refusal(), "");
  const std::string encoder = read_file(folder_ / "encoder.json");
  const auto with = [&encoder](const std::string& from, const std::string& to) {
    return std::string(encoder).replace(encoder.find(from), from.size(), to);
  };
  EXPECT_TRUE(contains(refusal("encoder.json", "[1]"), "is not a JSON object"));
  EXPECT_TRUE(contains(refusal("encoder.json", encoder.substr(0, 99)), "is not a JSON object"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "259")),
                       "has id 259, must be an integer from 0 to 258"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "-1")), "has id -1"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "2.5")), "has id 2.5"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "[257]")), "token 'low' has id a list"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "{}")), "has id a mapping"));
  EXPECT_TRUE(contains(refusal("encoder.json", "7"), "is not a JSON object"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("{", "{\"low\":257,")), "'low' twice"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("257", "256")), "given to two tokens"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("\"low\"", "\"\u20ac\"")), "for no byte"));
  EXPECT_TRUE(contains(refusal("encoder.json", with("\"A\"", "\"AA\"")), "for the byte 65"));

  EXPECT_TRUE(contains(refusal("vocab.bpe", "l o\n"), "line 1 must begin with '#version'"));
  EXPECT_TRUE(contains(refusal("vocab.bpe", "#version: 0.2\nl o w\n"), "line 2 has 3 tokens"));
  EXPECT_TRUE(contains(refusal("vocab.bpe", "#version: 0.2\nl o\nl w\n"), "line 3 merges"));
  EXPECT_TRUE(contains(refusal("vocab.bpe", "#version: 0.2\nl o\nl o\n"), "line 3 repeats"));

  const std::string dict = read_file(folder_ / "dict.txt");
  EXPECT_TRUE(contains(refusal("dict.txt", dict + "17 4\n"), "line 261 repeats token 17"));
  EXPECT_TRUE(contains(refusal("dict.txt", dict + "259 4\n"), "names token 259"));
  EXPECT_TRUE(contains(refusal("dict.txt", dict + "x\n"), "line 261 has 1 column,"));
  EXPECT_TRUE(contains(refusal("dict.txt", dict.substr(dict.find('\n') + 1)), "no line for token"));
  EXPECT_TRUE(contains(refusal("dict.txt", dict + "\xff\n"), "line 261 is not UTF-8"));
  EXPECT_TRUE(contains(refusal("dict.txt", ""), "is empty"));
  std::filesystem::remove(folder_ / "vocab.bpe");
  EXPECT_TRUE(contains(refusal(), "no such file"));
}

// A reader that builds a tree takes gibibytes for it, and the tree's end overflows the stack.
TEST_F(SmallByteBpe, RefusesBracketsAtTheFirst) {
  const std::string brackets(std::size_t{15} << 20, '[');
  EXPECT_TRUE(contains(refusal("encoder.json", brackets), "is not a JSON object"));
  EXPECT_TRUE(contains(refusal("encoder.json", "{\"a\":" + brackets), "'a' has id a list"));
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "{\"a\":";
  EXPECT_TRUE(contains(refusal("encoder.json", nested), "'a' has id a mapping"));
}

// dict.txt of the fixture: the tokens from the last to the first, then one filler word.
TEST_F(SmallByteBpe, GivesRobertasIdsAndMarks) {
  const RobertaTokens tokens(folder_.text());
  EXPECT_EQ(tokens.size(), 4 + 260 + 1);
  EXPECT_EQ(tokens.encode("low low"), (Tokens{4 + 258 - 257, 4}));
  EXPECT_EQ(tokens.single("low", 8), (Tokens{0, 5, 2}));
  EXPECT_EQ(tokens.pair("low", "low low", 8), (Tokens{0, 5, 2, 2, 5, 4, 2}));
}

TEST_F(SmallByteBpe, CutsTheLongerFirst) {
  const RobertaTokens tokens(folder_.text());
  const auto id = [](int byte) { return 4 + 258 - byte; };
  const std::int32_t a = id('a'), b = id('b'), c = id('c'), d = id('d');
  EXPECT_EQ(tokens.single("abcd", 4), (Tokens{0, a, b, 2}));
  EXPECT_EQ(tokens.pair("abcd", "cd", 8), (Tokens{0, a, b, 2, 2, c, d, 2}));
  EXPECT_EQ(tokens.pair("ab", "cdab", 7), (Tokens{0, a, b, 2, 2, c, 2})) << "B when equal";
}

// From the package transformers 4.57.6 with the same files.
TEST(ByteBpe, HasTheTokensOfGpt2) {
  PIPEWRIGHT_NEEDS_REAL_DATA("gpt2_bpe");
  const ByteBpe bpe(fixtures::real_data("gpt2_bpe"));
  ASSERT_EQ(bpe.size(), 50257);
  struct Known {
    std::string text;
    Tokens tokens;
  };
  for (const Known& known : {
           Known{"The sailor dogs the barmaid.", {464, 43272, 6844, 262, 275, 1670, 1698, 13}},
           Known{"I'll say we've won, it's theirs: they'd go, I'm sure you're not; DON'T",
                 {40,  1183, 910, 356,  1053, 1839, 11,  340, 338, 22021, 25, 484, 1549,
                  467, 11,   314, 1101, 1654, 345,  821, 407, 26,  23917, 6,  51}},
           Known{
               "  two  spaces\tand\ttabs \n new\n\n lines  ",
               {220, 734, 220, 9029, 197, 392, 197, 8658, 82, 220, 198, 649, 628, 3951, 220, 220}},
           Known{"naïve café – Œuvre, Straße, Привет мир, 東京タワー",
                 {2616,  38776, 40304, 784,   25370, 240,   14795, 260,   11,    15195, 39683,
                  68,    11,    12466, 253,   21169, 18849, 38857, 16843, 20375, 12466, 120,
                  18849, 21169, 11,    10545, 251,   109,   12859, 105,   23376, 25589, 6312}},
           Known{"👍🏽 family 👨‍👩‍👧 ok",
                 {41840, 235, 8582, 237, 121, 1641, 50169, 101, 447, 235, 41840, 102, 447, 235,
                  41840, 100, 12876}},
           Known{"x²+½=3.14159 ٣٤",
                 {87, 31185, 10, 23141, 28, 18, 13, 1415, 19707, 18923, 96, 149, 97}},
           Known{"a\u180e"
                 "b\u00a0"
                 "c\u3000"
                 "d\u2028"
                 "e\u0085"
                 "f\u001cg",
                 {64, 157, 254, 236, 65, 1849, 66, 5099, 222, 67, 447, 101, 68, 126, 227, 69, 216,
                  70}},
           Known{std::string(33, 'a'),
                 {24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 64}},
           Known{"<s> </s> <|endoftext|>",
                 {27, 82, 29, 7359, 82, 29, 1279, 91, 437, 1659, 5239, 91, 29}},
           Known{std::string("\0\1\x7f", 3), {188, 189, 221}},
           Known{"e\u0301 ʼs ’s", {68, 136, 223, 220, 134, 120, 82, 564, 247, 82}},
       }) {
    EXPECT_EQ(bpe.encode(known.text), known.tokens) << known.text;
    EXPECT_EQ(bpe.decode(known.tokens), known.text);
  }
  const RobertaTokens roberta(fixtures::real_data("gpt2_bpe"));
  EXPECT_EQ(roberta.size(), 50265);
  EXPECT_EQ(roberta.encode("Hello world"), (Tokens{31414, 232})) << "as the RoBERTa page shows";
}

}  // namespace
}  // namespace pipewright
