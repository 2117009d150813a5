// SPDX-License-Identifier: Apache-2.0
#include "core/base/utf8.h"

#include <gtest/gtest.h>

#include <array>

namespace pipewright {
namespace {

TEST(Utf8, IsValidOnlyInItsShortestForm) {
  EXPECT_EQ(valid_utf8("a\u00e9\u20ac\U0001F44D"), 10u);
  for (const char* wrong :
       {"ab\x80", "ab\xC0\xAF", "ab\xC3", "ab\xE0\x80\x80", "ab\xED\xA0\x80", "ab\xF0\x80\x80\x80",
        "ab\xF4\x90\x80\x80", "ab\xF5\x80\x80\x80", "ab\xE2\x82", "ab\xFF"})
    EXPECT_EQ(valid_utf8(wrong), 2u) << wrong;
  EXPECT_EQ(characters("a\u20acb"), (std::vector<std::string_view>{"a", "\u20ac", "b"}));
  EXPECT_EQ(next_character("a\u20acb", 2), 4u);
}

TEST(Utf8, IsReadCharacterByCharacter) {
  const std::string_view text = "\u00e9\u20ac\U0001F44D";
  EXPECT_EQ(first_character(text).code, U'\u00e9');
  EXPECT_EQ(first_character(text.substr(2)).code, U'\u20ac');
  EXPECT_EQ(first_character(text.substr(5)).code, U'\U0001F44D');
  EXPECT_EQ(first_character(text.substr(5)).length, 4u);
  EXPECT_EQ(first_character(text.substr(6)).length, 0u) << "within a character none begins";
  EXPECT_EQ(character_count(text), 3u);
}

TEST(Utf8, IsCutBetweenCharacters) {
  const std::string_view text = "a\u20acb";
  for (const auto [at, next, previous] : {std::array{0u, 0u, 0u},
                                          {1u, 1u, 1u},
                                          {2u, 4u, 1u},
                                          {3u, 4u, 1u},
                                          {4u, 4u, 4u},
                                          {5u, 5u, 5u}}) {
    EXPECT_EQ(next_character(text, at), next) << at;
    EXPECT_EQ(previous_character(text, at), previous) << at;
  }
}

}  // namespace
}  // namespace pipewright
