// SPDX-License-Identifier: Apache-2.0
// The head of the page: what was asked, and of how many runs the answer is.
#include <map>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

/// "36 runs: 34 done, 2 failed"
std::string states_of(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::size_t> counts;
  for (const RunRecord& run : runs) ++counts[run.diverged() ? "diverged" : run.state];
  std::vector<std::string> parts;
  for (const char* const state :
       {"done", "diverged", "failed", "interrupted", "running", "missing"}) {
    const auto found = counts.find(state);
    if (found == counts.end()) continue;
    parts.push_back(concat(found->second, " ", std::string_view(state)));
    counts.erase(found);
  }
  for (const auto& [state, count] : counts) parts.push_back(concat(count, " ", state));
  return concat(counted(runs.size(), "run"), ": ", join(parts, ", "));
}

/// Paragraphs of a comment; lines that are set off by blanks are commands or tables.
std::string paragraphs(const std::string& lines) {
  std::string text, open;
  const auto go_to = [&](const std::string& element) {
    if (open == element) return;
    if (!open.empty()) text += concat("</", open, ">\n");
    if (!element.empty()) text += concat("<", element, element == "p" ? " class=\"lead\">" : ">");
    open = element;
  };
  for (const std::string& line : split(lines, '\n')) {
    if (trimmed(line).empty()) {
      go_to("");
      continue;
    }
    const std::string element = line.starts_with("  ") ? "pre" : "p";
    const bool goes_on = open == element;
    go_to(element);
    text += concat(goes_on ? "\n" : "", html_text(trimmed(line)));
  }
  go_to("");
  return text;
}

}  // namespace

std::string page_head(const Report& report) {
  const std::size_t first = report.question.find("\n\n");
  std::string question = paragraphs(report.question.substr(0, first));
  if (first != std::string::npos)
    question +=
        html_details("What the file says besides", paragraphs(report.question.substr(first)));
  std::string remarks;
  for (const std::string& remark : report.remarks)
    remarks += concat("<li>", html_text(remark), "</li>");
  return concat(
      "<header>\n<p class=\"kind\">Report of an experiment</p>\n<h1>", html_text(report.title, 200),
      "</h1>\n", question, "<p class=\"states\">", html_text(states_of(report.runs)), "</p>\n",
      remarks.empty() ? "" : concat("<ul class=\"remarks\">", remarks, "</ul>\n"), "</header>\n");
}

}  // namespace pipewright
