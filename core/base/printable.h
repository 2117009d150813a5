// SPDX-License-Identifier: Apache-2.0
/// Text of any origin made safe to print. What a terminal, an editor or a browser would act upon
/// becomes an escape that can be seen: control characters (`\n`, `\x1b`, `\u{85}`), bytes that are
/// not UTF-8 (`\xff`), and characters that are invisible or turn the direction of writing around
/// (`\u{202e}`). Everything else stays, backslashes too, so that the result reads well; it cannot
/// be turned back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pipewright {

/// The text as one printable line. A text of more than `most` characters is shortened to its
/// beginning and its end, with the number of characters left out between them.
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);

/// printable() of each line: line feeds stay, and `most` limits each line.
std::string printable_lines(std::string_view text, std::size_t most = std::string_view::npos);

/// Terminal columns that printable text takes: two for a Chinese character or an emoji, none for a
/// combining accent.
std::size_t width_of(std::string_view text);

/// The longest beginning of a printable line that fits into `columns`, with "…" as its last
/// character where text was cut off.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace pipewright
