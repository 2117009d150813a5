// SPDX-License-Identifier: Apache-2.0
// Text as messages and files need it: concatenation without surprises, numbers that read back.
#include "core/base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

namespace pipewright {
namespace {

using TextWords = std::vector<std::string>;

double read_back(const std::string& text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_EQ(result.ptr, text.data() + text.size()) << text;
  return value;
}

TEST(Concat, TakesTextsNumbersAndFlags) {
  const std::string owned = "owned";
  EXPECT_EQ(concat("stage ", 2, ": ", 0.5), "stage 2: 0.5");
  EXPECT_EQ(concat(owned, ' ', std::string_view("view"), '!'), "owned view!");
  EXPECT_EQ(concat(std::int64_t{-9'000'000'000}, "/", std::uint64_t{18'446'744'073'709'551'615u}),
            "-9000000000/18446744073709551615");
  EXPECT_EQ(concat(), "");
}

TEST(Concat, ALiteralIsATextAndABoolIsAWord) {
  EXPECT_EQ(concat("literal"), "literal");  // a pointer must not turn into a flag
  const char* pointer = "pointer";
  EXPECT_EQ(concat(pointer), "pointer");
  EXPECT_EQ(concat(true, " ", false), "true false");
  EXPECT_EQ(concat('c'), "c");
}

TEST(Concat, DoublesAreShortAndExact) {
  EXPECT_EQ(concat(0.1, " ", 1.0, " ", 1e-3, " ", 0.1f), "0.1 1 0.001 0.10000000149011612");
}

TEST(NumberText, ReadsBackAsTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const double back = read_back(number_text(value));
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value))
        << number_text(value);
  }
}

TEST(NumberText, KeepsTheEdgesOfDouble) {
  using Limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, Limits::min(), Limits::denorm_min(), Limits::max(),
                             Limits::lowest(), 1 + Limits::epsilon()})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read_back(number_text(value))),
              std::bit_cast<std::uint64_t>(value))
        << number_text(value);
}

TEST(NumberText, NamesWhatIsNoNumber) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(number_text(Limits::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(-Limits::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(Limits::infinity()), "inf");
  EXPECT_EQ(number_text(-Limits::infinity()), "-inf");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (TextWords{"a", "", "b"}));
  EXPECT_EQ(split(",", ','), (TextWords{"", ""}));
  EXPECT_EQ(split("", ','), TextWords{""});
}

TEST(Join, IsTheInverseOfSplit) {
  for (const std::string text : {"a,b,c", "alone", "", "a,,b", "a,", ",a", ",,"})
    EXPECT_EQ(join(split(text, ','), ","), text);
}

TEST(Trimmed, CutsBlanksAtBothEndsOnly) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(MatchesGlob, TakesStarsForAnythingAndQuestionMarksForOneCharacter) {
  for (const char* glob :
       {"*", "a.b.weight", "a.*", "*.weight", "a*t", "a.?.w*", "**b**", "*a.b.*"})
    EXPECT_TRUE(matches_glob("a.b.weight", glob)) << glob;
  for (const char* glob : {"", "a.b", "b.*", "*.bias", "a.??.*", "a.b.weight?", "*b", "A*"})
    EXPECT_FALSE(matches_glob("a.b.weight", glob)) << glob;
  EXPECT_TRUE(matches_glob("", "*"));
  EXPECT_TRUE(matches_glob("abab", "*ab")) << "the last of several places";
  EXPECT_FALSE(matches_glob("aba", "*ab"));
}

TEST(Nearest, FindsSlipsOfTheFinger) {
  const TextWords known{"version", "velocity", "as_coded"};
  EXPECT_EQ(nearest("verison", known), "version");
  EXPECT_EQ(nearest("versio", known), "version");
  EXPECT_EQ(nearest("vellocity", known), "velocity");
  EXPECT_EQ(nearest("as-coded", known), "as_coded");
}

TEST(Nearest, FindsTheSameWordsInAnotherOrder) {
  const TextWords known{"limit_test", "limit_train", "train"};
  EXPECT_EQ(nearest("train_limit", known), "limit_train");
  EXPECT_EQ(nearest("test_limit", known), "limit_test");
  EXPECT_EQ(nearest("limit_limit", TextWords{"limit"}), "");
}

TEST(Nearest, TakesTwoSwappedLettersForOneSlip) {
  const TextWords known{"run", "list", "sgd"};
  EXPECT_EQ(nearest("rnu", known), "run");
  EXPECT_EQ(nearest("lsit", known), "list");
  EXPECT_EQ(nearest("gsd", known), "sgd");
  EXPECT_EQ(nearest("adb", TextWords{"bda"}), "");  // no neighbours
  EXPECT_EQ(nearest("abcd", TextWords{"abdce", "bacd"}), "bacd");
}

TEST(Nearest, OffersNothingThatIsFar) {
  EXPECT_EQ(nearest("momentum", TextWords{"version", "velocity"}), "");
  EXPECT_EQ(nearest("xy", TextWords{"ab"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, TakesTheFirstOfEquallyNear) {
  EXPECT_EQ(nearest("cat", TextWords{"bat", "hat"}), "bat");
  EXPECT_EQ(nearest("cat", TextWords{"hat", "bat"}), "hat");
}

TEST(Suggestion, AsksOrListsOrIsSilent) {
  EXPECT_EQ(suggestion("gpip", TextWords{"gpipe", "xpipe"}), "; did you mean 'gpipe'?");
  EXPECT_EQ(suggestion("zebra", TextWords{"gpipe", "xpipe"}), "; known: gpipe, xpipe");
  EXPECT_EQ(suggestion("zebra", {}), "");
}

TEST(DurationText, PicksTheUnit) {
  EXPECT_EQ(duration_text(1.5), "1.5 s");
  EXPECT_EQ(duration_text(42), "42 s");
  EXPECT_EQ(duration_text(123), "2 min 03 s");
  EXPECT_EQ(duration_text(3840), "1 h 04 min");
}

TEST(CountText, PicksTheUnit) {
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1200), "1.2 k");
  EXPECT_EQ(count_text(14'700'000), "14.7 M");
  EXPECT_EQ(count_text(2.5e9), "2.50 G");
}

TEST(BytesText, CountsIn1024) {
  EXPECT_EQ(bytes_text(1000), "1000 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(58.7 * 1024 * 1024), "58.7 MiB");
  EXPECT_EQ(bytes_text(3.0 * 1024 * 1024 * 1024), "3.00 GiB");
}

TEST(ShortKey, IsTheLastWordWithTheListThatItStandsIn) {
  EXPECT_EQ(short_key("optimizer.lr"), "lr");
  EXPECT_EQ(short_key("label"), "label");
  EXPECT_EQ(short_key("optimizer.groups.0.lr"), "groups.0.lr");
  EXPECT_EQ(short_key("groups.12.lr"), "groups.12.lr");
  EXPECT_EQ(short_key("scheme.v2.lr"), "lr");
  EXPECT_EQ(short_key("a..b"), "b");
  EXPECT_EQ(short_key(""), "");
}

TEST(ShellQuoted, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_quoted("runs/a-b_1.yaml"), "runs/a-b_1.yaml");
  EXPECT_EQ(shell_quoted("optimizer.lr=0.1"), "optimizer.lr=0.1");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("$HOME `id`*"), "'$HOME `id`*'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("Übung"), "'Übung'");
}

TEST(ShellQuoted, WritesWhatCannotBePrintedAsNumbers) {
  EXPECT_EQ(shell_quoted("a\nb"), "$'a\\012b'");
  EXPECT_EQ(shell_quoted("it's \\ $x\x1b[2J\xff"), "$'it\\047s \\134 $x\\033[2J\\377'");
  EXPECT_EQ(shell_quoted("Ü\u202e"), "$'\\303\\234\\342\\200\\256'");
}

}  // namespace
}  // namespace pipewright
