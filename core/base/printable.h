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

/// One line. Of a text of more than `most` characters the beginning and the end are shown and how
/// many are left out between them.
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);

/// The same for several lines: line feeds stay, and `most` is that of each line.
std::string printable_lines(std::string_view text, std::size_t most = std::string_view::npos);

/// Columns of a terminal that printable text takes: two for a character of Chinese or an emoji,
/// none for an accent that stands above another.
std::size_t width_of(std::string_view text);

/// As much of a printable line as fits into `columns`; the last one is "…" where text is missing.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace pipewright
