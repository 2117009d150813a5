/// Characters of UTF-8 text, by their bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace pipewright {

/// How many bytes from the beginning are whole characters (RFC 3629: shortest forms only, no
/// surrogates, up to U+10FFFF): text.size() if all are.
std::size_t valid_utf8(std::string_view text);

/// The characters of valid UTF-8. The views last as long as the text.
std::vector<std::string_view> characters(std::string_view text);

/// `at`, or the nearest later place where a character of valid UTF-8 begins.
std::size_t next_character(std::string_view text, std::size_t at);

}  // namespace pipewright
