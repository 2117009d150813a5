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
/// Charts append their data to `data`.
PageSection curves_section(const Report& report, Value& data);
PageSection maps_section(const Report& report);
PageSection against_section(const Report& report, Value& data);
PageSection front_section(const Report& report, Value& data);
PageSection schedules_section(const Report& report);
PageSection strips_section(const Report& report, Value& data);
PageSection memory_section(const Report& report, Value& data);
PageSection settings_section(const Report& report);
PageSection failures_section(const Report& report);
PageSection provenance_section(const Report& report);
PageSection commands_section(const Report& report);
PageSection citation_section(const Report& report);

}  // namespace pipewright
