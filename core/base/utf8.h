// SPDX-License-Identifier: Apache-2.0
/// Characters of UTF-8 text (RFC 3629: shortest forms only, no surrogates, up to U+10FFFF).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace pipewright {

/// A character's code point and its length in bytes; length 0 where the bytes are not valid UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t length = 0;
};

/// The character at the beginning of `text`, which is not empty.
Character first_character(std::string_view text);

/// How many bytes from the beginning are whole characters: text.size() if all are.
std::size_t valid_utf8(std::string_view text);

/// The characters of valid UTF-8. The views last as long as the text.
std::vector<std::string_view> characters(std::string_view text);
/// How many characters of valid UTF-8 there are.
std::size_t character_count(std::string_view text);

/// `at`, or the nearest later place where a character of valid UTF-8 begins, or the text ends.
std::size_t next_character(std::string_view text, std::size_t at);
/// `at`, or the nearest earlier place where a character of valid UTF-8 begins.
std::size_t previous_character(std::string_view text, std::size_t at);

}  // namespace pipewright
