/// Characters of UTF-8 text.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipewright {

/// A character's code point and length in bytes; length 0 where the bytes are none.
struct Character {
  char32_t code = 0;
  std::size_t length = 0;
};

/// The character at the beginning of `text`, which is not empty. Overlong forms, surrogates and
/// what lies beyond U+10FFFF are no characters.
Character first_character(std::string_view text);

}  // namespace pipewright
