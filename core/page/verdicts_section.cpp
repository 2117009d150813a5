// SPDX-License-Identifier: Apache-2.0
// Whether the runs show what the experiment claims.
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
