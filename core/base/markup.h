/// Any text as a piece of another language, in which it stands for itself and does nothing. All of
/// them make it printable first (see printable.h): a line feed becomes `\n`, and so on.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// For a paragraph or a cell of a table (GitHub's Markdown). Characters are escaped that could
/// begin a tag, an entity, a link, a picture, code, emphasis or mathematics, or end the cell.
std::string markdown_text(std::string_view text);

/// For a paragraph or a cell of LaTeX.
std::string latex_text(std::string_view text);

/// A whole field of RFC 4180. A spreadsheet takes what begins with = + - @ for a formula, so that
/// such a text gets an apostrophe before it; a number keeps its sign.
std::string csv_text(std::string_view text);

/// For text and attributes (in double quotes, as all of ours are) of XML, SVG and HTML.
std::string xml_text(std::string_view text);

}  // namespace pipewright
