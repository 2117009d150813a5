/// A text in double quotes, read alike by JSON and YAML. Private to config.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// Escapes quotes, backslashes, control characters and the line breaks and marks beyond ASCII that
/// readers of YAML disagree about.
std::string quoted_text(std::string_view text);

/// The length in bytes of the character at the beginning of `text` that must be escaped, or 0.
std::size_t special_length(std::string_view text);

}  // namespace pipewright
