// SPDX-License-Identifier: Apache-2.0
/// HTML as text. Every text from outside passes html_text(), so that it is shown and never acts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The text as content or as a double-quoted attribute, on one line; of more than `most` characters
/// the middle is left out.
std::string html_text(std::string_view text, std::size_t most = std::string_view::npos);

/// A part of the page with a heading, which the page's list of contents names.
struct PageSection {
  std::string id;     ///< of the heading, to be linked to
  std::string title;  ///< plain text
  std::string body;   ///< HTML; "": there is nothing to say, and no such part
};

/// A table with a caption, which scrolls by itself where it is wider than the page. Texts of cells
/// are HTML already; `names` is the number of columns that name the row.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, const std::vector<std::string>& heads, std::size_t names = 1);
  void row(const std::vector<std::string>& cells);
  std::string html() &&;

 private:
  std::string out_;
  std::size_t names_;
};

/// What a reader may open: a line, and what is behind it.
std::string html_details(std::string_view summary, std::string_view body, bool open = false);

// Files that are compiled into the program (cmake/embed.cmake).
extern const std::string_view kPageStyle;   ///< page.css
extern const std::string_view kPageScript;  ///< page.js
extern const std::string_view kPapers;      ///< papers.bib

}  // namespace pipewright
