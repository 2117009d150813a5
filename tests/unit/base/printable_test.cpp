// SPDX-License-Identifier: Apache-2.0
#include "core/base/printable.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

using std::string_literals::operator""s;

TEST(Printable, LeavesWhatCanBeReadAsItIs) {
  for (const char* text :
       {"vgg16, PD4", "Übung", "流水线", "🚀❤️", "C:\\new", "a\u00a0b", "±½–", ""})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("\x1b]0;title\a"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nb\r\tc\x7f"), "a\\nb\\r\\tc\\x7f");
  EXPECT_EQ(printable("a\0b"s), "a\\x00b");
  EXPECT_EQ(printable("\u0085\u009b31m"), "\\u{85}\\u{9b}31m") << "C1, which some terminals obey";
}

TEST(Printable, ShowsWhatIsInvisibleOrReordersText) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u2069"), "a\\u{202e}b\\u{2066}c\\u{2069}");
  EXPECT_EQ(printable("a\u2028b\u2029"), "a\\u{2028}b\\u{2029}");
  EXPECT_EQ(printable("a\u200bb\ufeffc\u00add"), "a\\u{200b}b\\u{feff}c\\u{ad}d");
  EXPECT_EQ(printable("\U000E0041"), "\\u{e0041}");
  EXPECT_EQ(printable("\uffff"), "\\u{ffff}") << "which XML forbids";
}

TEST(Printable, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\xff\xfe"), "a\\xff\\xfe");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "C1 in Latin-1";
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, ShortensInTheMiddle) {
  EXPECT_EQ(printable("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(printable("abcdefghijk", 10), "abcde…(1 characters left out)…ghijk");
  EXPECT_EQ(printable("äöüßäöüß", 3), "äö…(5 characters left out)…ß") << "characters, not bytes";
  EXPECT_EQ(printable(std::string(10'000'000, 'x'), 100).size(),
            100 + sizeof "…(9999900 characters left out)…" - 1);
}

TEST(PrintableLines, KeepsLineFeedsOnly) {
  EXPECT_EQ(printable_lines("one\ntwo\r\n\x1b[2J\n"), "one\ntwo\\r\n\\x1b[2J\n");
  EXPECT_EQ(printable_lines("abcdef\nabc", 4), "ab…(2 characters left out)…ef\nabc");
}

TEST(WidthOf, CountsColumnsOfATerminal) {
  EXPECT_EQ(width_of("abc"), 3u);
  EXPECT_EQ(width_of("±–━·"), 4u);
  EXPECT_EQ(width_of("流水"), 4u);
  EXPECT_EQ(width_of("🚀"), 2u);
  EXPECT_EQ(width_of("e\u0301"), 1u) << "an accent of its own";
}

TEST(CutTo, FitsIntoTheColumns) {
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdef", 5), "abcd…");
  EXPECT_EQ(cut_to("流水线", 5), "流水…");
  EXPECT_EQ(cut_to("流水线", 4), "流…") << "half a character would not fit";
  EXPECT_EQ(cut_to("abc", 1), "…");
  EXPECT_EQ(cut_to("abc", 0), "");
  for (std::size_t columns = 0; columns < 12; ++columns)
    EXPECT_LE(width_of(cut_to("a流e\u0301b🚀cd", columns)), columns);
}

}  // namespace
}  // namespace pipewright
