// SPDX-License-Identifier: Apache-2.0
// The commands that repeat what the page shows.
#include "core/base/text.h"
#include "core/page/sections.h"

namespace pipewright {

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

}  // namespace pipewright
