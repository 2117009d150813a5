// SPDX-License-Identifier: Apache-2.0
// Runs without results, with the reason that they gave.

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostFailures = 200;

std::string reason_of(const RunRecord& run) {
  if (!run.error.empty()) return run.error;
  if (run.state == "running") return "it is still running, or was killed";
  if (run.state == "missing") return "it has not begun";
  return "it says no reason";
}

}  // namespace

PageSection failures_section(const Report& report) {
  PageSection section{.id = "failures", .title = "Runs without results"};
  HtmlTable table("Runs that are not done, with the reason that they gave",
                  {"run", "state", "reason"}, 1);
  std::size_t count = 0;
  for (const RunRecord& run : report.runs) {
    if (run.done()) continue;
    if (++count > kMostFailures) continue;
    table.row(
        {html_text(run.folder.filename().empty() ? run.label : run.folder.filename().string(), 120),
         html_text(run.diverged() ? "diverged" : run.state, 40), html_text(reason_of(run), 1000)});
  }
  if (count == 0) return section;
  section.body = concat("<div class=\"words\">", std::move(table).html(), "</div>");
  if (count > kMostFailures)
    section.body += concat("<p>", count - kMostFailures, " more are not listed.</p>\n");
  return section;
}

}  // namespace pipewright
