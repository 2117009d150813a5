// SPDX-License-Identifier: Apache-2.0
/// The sections of the page, one file each. A section without anything to say has an empty body.
#pragma once

#include "core/config/value.h"
#include "core/page/html.h"
#include "core/page/page_content.h"

namespace pipewright {

/// The title with the question and the states of runs, above all sections.
std::string page_head(const Report& report);

PageSection results_section(const Report& report);
PageSection verdicts_section(const Report& report);
PageSection maps_section(const Report& report);
PageSection front_section(const Report& report);
PageSection schedules_section(const Report& report);
PageSection strips_section(const Report& report);
PageSection memory_section(const Report& report);
/// What the schedules hold over time: two charts for each number of stages.
std::vector<Chart> memory_charts(const Report& report);
PageSection settings_section(const Report& report);
PageSection failures_section(const Report& report);
PageSection provenance_section(const Report& report);
PageSection commands_section(const Report& report);
PageSection citation_section(const Report& report);

}  // namespace pipewright
