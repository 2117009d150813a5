// SPDX-License-Identifier: Apache-2.0
// The table of results, with published numbers where the experiment names some.
#include "core/base/text.h"
#include "core/page/sections.h"

namespace pipewright {

PageSection results_section(const Report& report) {
  PageSection section{.id = "results", .title = "Results"};
  if (!report.table) return section;
  const Table& table = *report.table;
  const auto escaped = [](std::string_view text) { return html_text(text, 200); };
  const std::vector<std::vector<std::string>> grid = table_texts(table, escaped);
  HtmlTable html(table.caption, grid.front(), table.row_keys.size());
  for (std::size_t r = 1; r < grid.size(); ++r) html.row(grid[r]);
  section.body = std::move(html).html();
  if (!report.best.empty()) section.body += concat("<p>", html_text(report.best), "</p>\n");
  if (const std::string note = mixing_note(table); !note.empty())
    section.body += concat("<p class=\"quiet\">", html_text(note), "</p>\n");
  if (!table.choices.empty()) {
    section.body += concat("<p class=\"quiet\">", html_text(choices_heading(table)), "</p>\n<ul>");
    for (const std::string& choice : table.choices)
      section.body += concat("<li>", html_text(choice, 400), "</li>");
    section.body += "</ul>\n";
  }
  if (table.notes.empty()) return section;
  section.body += "<p class=\"quiet\">Differs from what was published:</p>\n<ol class=\"notes\">";
  for (const std::string& note : table.notes)
    section.body += concat("<li>", html_text(note), "</li>");
  section.body += "</ol>\n";
  return section;
}

}  // namespace pipewright
