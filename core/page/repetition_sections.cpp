// SPDX-License-Identifier: Apache-2.0
// How to repeat what the page shows, and how to cite it: commands, and BibTeX of the program and of
// the papers whose schemes the runs have.
#include <algorithm>
#include <set>
#include <vector>

#include "core/base/text.h"
#include "core/page/sections.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

/// The entries of papers.bib whose schemes are used, each with a line break before and behind it.
std::string papers_of(const std::set<std::string>& schemes) {
  std::string entries;
  bool wanted = false;
  for (const std::string& line : split(kPapers, '\n')) {
    if (line.starts_with("% ")) {
      const std::vector<std::string> own = split(line.substr(2), ' ');
      wanted = std::ranges::any_of(own, [&](const auto& name) { return schemes.contains(name); });
      if (wanted) entries += '\n';
    } else if (wanted && !line.empty()) {
      entries += line + '\n';
    }
  }
  return entries;
}

}  // namespace

PageSection commands_section(const Report& report) {
  PageSection section{.id = "commands", .title = "Commands that repeat it"};
  if (report.commands.empty()) return section;
  section.body = "<dl class=\"commands\">\n";
  for (const ReportCommand& command : report.commands)
    section.body += concat("<dt>", html_text(command.what), "</dt><dd><pre>",
                           html_text(command.line), "</pre></dd>\n");
  section.body += "</dl>\n";
  return section;
}

PageSection citation_section(const Report& report) {
  std::set<std::string> used;
  for (const RunRecord& run : report.runs)
    if (run.config.known()) used.insert(key_text(run, "scheme.name"));
  std::string text = concat(
      "@software{pipewright,\n  title = {Pipewright: a laboratory for pipeline-parallel "
      "training},\n"
      "  author = {{The Pipewright authors}},\n  version = {",
      report.version, "}",
      report.commit.empty() ? std::string() : concat(",\n  note = {commit ", report.commit, "}"),
      "\n}\n");
  text += papers_of(used);
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += html_text(line) + "\n";
  return {.id = "cite",
          .title = "How to cite it",
          .body = concat("<pre class=\"bibtex\">", lines, "</pre>\n")};
}

}  // namespace pipewright
