// SPDX-License-Identifier: Apache-2.0
/// Quoted text that YAML and JSON readers alike read back. Private to config.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// The text in double quotes. Escaped are quotes, backslashes, control characters, and the line
/// breaks and marks beyond ASCII that YAML readers disagree about. U+FFFD stands for each byte that
/// is not UTF-8. Digests are made of it.
std::string double_quoted(std::string_view text);

}  // namespace pipewright
