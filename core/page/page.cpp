// SPDX-License-Identifier: Apache-2.0
// Puts the page together. Its policy allows no network, and no script but the page's own, which it
// names by its digest: a text from outside that reached the page as a script would not run.
#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/page/page_content.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

constexpr std::string_view kPageBegin = "<!DOCTYPE html>\n";
constexpr std::string_view kPageMarker = "<meta name=\"generator\" content=\"Pipewright ";

/// Gives lines of one series one look.
void give_looks(Report& report) {
  for (std::vector<Chart>* const charts :
       {&report.curves, &report.against, &report.edges, &report.memory})
    for (Chart& chart : *charts) report.looks.give(chart);
}

/// Bytes, given as hexadecimal digits, in base 64.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto value = [](char digit) {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  };
  std::string text;
  unsigned bits = 0, count = 0;
  for (const char digit : hex) {
    bits = bits << 4 | value(digit);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    text += kLetters[bits >> count & 63];
  }
  if (count > 0) text += kLetters[bits << (6 - count) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string source_of(std::string_view code) {
  return concat("'sha256-", base64_of_hex(sha256(code)), "'");
}

std::string policy() {
  return concat("default-src 'none'; base-uri 'none'; form-action 'none'; style-src ",
                source_of(kPageStyle), "; script-src ", source_of(kPageScript));
}

std::string contents(const std::vector<PageSection>& sections) {
  std::string text = "<nav aria-label=\"Contents\"><ul>";
  for (const PageSection& section : sections)
    text += concat("<li><a href=\"#", section.id, "\">", html_text(section.title), "</a></li>");
  return text + "</ul></nav>\n";
}

std::string foot(const Report& report) {
  return concat("<footer><p>Written by Pipewright ", html_text(report.version),
                report.commit.empty() ? std::string() : concat(" (", html_text(report.commit), ")"),
                ".</p></footer>\n");
}

}  // namespace

bool is_report_page(std::string_view beginning) {
  return beginning.starts_with(kPageBegin) && beginning.find(kPageMarker) != beginning.npos;
}

std::string report_page(Report report) {
  give_looks(report);
  std::vector<PageSection> sections{
      results_section(report),
      verdicts_section(report),
      {"curves", "Curves", chart_figures(report.curves)},
      maps_section(report),
      {"against", concat(report.metric, " against settings"), chart_figures(report.against)},
      front_section(report),
      schedules_section(report),
      strips_section(report),
      memory_section(report),
      settings_section(report),
      failures_section(report),
      provenance_section(report),
      commands_section(report),
      citation_section(report)};
  std::erase_if(sections, [](const PageSection& section) { return section.body.empty(); });
  std::string body;
  for (const PageSection& section : sections)
    body += concat("<section aria-labelledby=\"", section.id, "\">\n<h2 id=\"", section.id, "\">",
                   html_text(section.title), "</h2>\n", section.body, "</section>\n");
  return concat(
      kPageBegin,
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      policy(),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n",
      kPageMarker, html_text(report.version), "\">\n<title>", html_text(report.title, 200),
      "</title>\n<style>", kPageStyle,
      "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to the results</a>\n",
      page_head(report), contents(sections), "<main id=\"content\" tabindex=\"-1\">\n", body,
      "</main>\n", foot(report), "<script>", kPageScript, "</script>\n</body>\n</html>\n");
}

}  // namespace pipewright
