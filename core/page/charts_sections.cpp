// SPDX-License-Identifier: Apache-2.0
// The sections that hold charts and little else.
#include "core/base/text.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

std::string figures(const std::vector<Chart>& charts) {
  std::string text;
  for (const Chart& chart : charts)
    if (!chart.empty()) text += chart_figure(chart);
  return text;
}

}  // namespace

PageSection curves_section(const Report& report) {
  return {.id = "curves", .title = "Curves", .body = figures(report.curves)};
}

PageSection against_section(const Report& report) {
  return {.id = "against",
          .title = concat(report.metric, " against settings"),
          .body = figures(report.against)};
}

}  // namespace pipewright
