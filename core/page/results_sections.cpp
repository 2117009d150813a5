// SPDX-License-Identifier: Apache-2.0
// The table of results, with published numbers where the experiment names some, and whether the
// runs show what the experiment claims.
#include <cmath>

#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

/// A sign beside the word, so that neither colour nor a word alone says it.
const char* sign_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Held: return "✓";
    case Outcome::NotHeld: return "✗";
    case Outcome::NotShown: return "?";
  }
  return "";
}

std::string number_or_dash(double value) {
  return std::isnan(value) ? "–" : rounded_text(value, 3);
}

/// The comparisons of a claim with their numbers, in the metric's own unit.
std::string tests_table(const Verdict& verdict) {
  HtmlTable table("Comparisons, in the metric’s own unit",
                  {"of", "minus", "metric", "difference", "95 % interval", "p", "p (Holm)", "runs"},
                  2);
  bool any = false;
  for (const ClaimTest& test : verdict.tests) {
    if (test.minus.empty() || !test.compared) continue;
    any = true;
    table.row(
        {html_text(test.of, 120), html_text(test.minus, 120), html_text(test.metric, 120),
         concat(test.ratio ? "× " : "", number_or_dash(test.effect)),
         concat(number_or_dash(test.interval.low), " to ", number_or_dash(test.interval.high)),
         number_or_dash(test.p), number_or_dash(test.p_adjusted),
         concat(test.runs_of, " and ", test.runs_minus)});
  }
  return any ? html_details("Numbers", std::move(table).html()) : std::string();
}

}  // namespace

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

PageSection verdicts_section(const Report& report) {
  PageSection section{.id = "verdicts", .title = "What was claimed, and what the runs show"};
  if (report.verdicts.empty()) return section;
  section.body = "<ul class=\"verdicts\">\n";
  for (const Verdict& verdict : report.verdicts) {
    std::string kind = words_of(verdict.outcome);
    std::string name = kind;
    for (char& c : name)
      if (c == ' ') c = '-';
    section.body += concat("<li class=\"", name, "\"><strong><span aria-hidden=\"true\">",
                           sign_of(verdict.outcome), "</span> ", kind, "</strong> <q>",
                           html_text(verdict.say), "</q><p class=\"quiet\">",
                           html_text(verdict.why), "</p>", tests_table(verdict), "</li>\n");
  }
  section.body += "</ul>\n";
  return section;
}

}  // namespace pipewright
