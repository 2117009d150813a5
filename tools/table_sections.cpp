// SPDX-License-Identifier: Apache-2.0
#include "tools/table_sections.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/experiment_keys.h"
#include "core/experiment/catalogue.h"
#include "core/measuring/hardware_source.h"
#include "core/tables/claims.h"
#include "core/tables/plot_spec.h"
#include "core/tables/table_spec.h"
#include "tools/part_kinds.h"

namespace pipewright {
namespace {

struct ReportSection {
  const char* name;
  const char* help;
  std::vector<OptionInfo> (*options)();
};

constexpr ReportSection kReportSections[] = {
    {"table", "What `pipewright table` prints of the experiment's sweep.", table_options},
    {"plot", "What `pipewright plot` draws of the experiment's sweep.", plot_options},
    {"claims",
     "A list of sentences, each with a condition on the runs that `pipewright table` checks: held, "
     "not held or not shown.",
     claim_options},
    {"hardware", "The machine that `pipewright simulate` simulates; a sweep can vary its options.",
     hardware_section_options},
};

OptionInfo table_section(const std::string& name) {
  for (const ReportSection& each : kReportSections) {
    if (name != each.name) continue;
    OptionInfo section;
    section.name = name;
    section.type = OptionInfo::Type::Section;
    section.help = each.help;
    section.section = each.options();
    return section;
  }
  throw Error(ErrorKind::Bug, concat("the section '", name, "' is not described"));
}

}  // namespace

std::vector<OptionInfo> table_sections() {
  std::vector<OptionInfo> sections;
  for (const ExperimentKey& key : experiment_keys())
    if (key.use == KeyUse::Shown) sections.push_back(table_section(key.name));
  return sections;
}

std::vector<OptionInfo> plain_sections() {
  std::vector<OptionInfo> sections;
  for (OptionInfo& info : experiment_options())
    if (std::ranges::none_of(part_kinds(),
                             [&](const PartKind& kind) { return kind.name == info.name; }))
      sections.push_back(std::move(info));
  for (OptionInfo& section : table_sections()) sections.push_back(std::move(section));
  return sections;
}

}  // namespace pipewright
