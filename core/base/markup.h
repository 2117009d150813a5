// SPDX-License-Identifier: Apache-2.0
/// Escapes text for another language, so that it is shown as it is and cannot act as code there.
/// Each function makes the text printable first (see printable.h): a line feed becomes `\n`, and so
/// on.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// Escapes text for a paragraph or a table cell of GitHub's Markdown: characters that could begin a
/// tag, an entity, a link, a picture, code, emphasis or mathematics, or that could end the cell.
std::string markdown_text(std::string_view text);

/// Escapes text for a paragraph or a table cell of LaTeX.
std::string latex_text(std::string_view text);

/// A whole CSV field (RFC 4180), in quotes where it needs them. A text that a spreadsheet would
/// take for a formula, because it begins with = + - @, gets an apostrophe before it; a number keeps
/// its sign.
std::string csv_text(std::string_view text);

/// Escapes text for the content and the double-quoted attributes of XML, SVG and HTML.
std::string xml_text(std::string_view text);

}  // namespace pipewright
