// SPDX-License-Identifier: Apache-2.0
// In which settings the runs differ, and which all of them share.
#include <map>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/sections.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostValues = 12, kLongestValue = 80;

using Settings = std::map<std::string, std::map<std::string, std::size_t>>;  // key, text, runs

/// How many runs have each value of each setting. Runs of equal documents are flattened once.
Settings settings_of(const std::vector<RunRecord>& runs, std::size_t& known) {
  Settings settings;
  known = 0;
  std::map<const Value*, std::map<std::string, std::string>> flat;
  for (const RunRecord& run : runs) {
    if (!run.config.known()) continue;
    ++known;
    const Value& document = run.config.of_any_seed();
    const auto [found, added] = flat.try_emplace(&document);
    if (added) found->second = option_texts(document);
    for (const auto& [key, text] : found->second) {
      const bool seed = key == "train.seed";
      ++settings[key][seed ? key_text(run, key) : text];
    }
  }
  settings.erase("name");
  return settings;
}

std::string values_text(const std::map<std::string, std::size_t>& values, std::size_t without) {
  std::vector<std::string> parts;
  for (const auto& [text, runs] : values) {
    if (parts.size() == kMostValues) {
      parts.push_back(concat(values.size() - kMostValues, " more values"));
      break;
    }
    parts.push_back(
        concat("<code>", html_text(text, kLongestValue), "</code> ", counted(runs, "run")));
  }
  if (without > 0) parts.push_back(concat("not set in ", counted(without, "run")));
  return join(parts, ", ");
}

}  // namespace

PageSection settings_section(const Report& report) {
  PageSection section{.id = "settings", .title = "Settings"};
  std::size_t known = 0;
  const Settings settings = settings_of(report.runs, known);
  HtmlTable differ("Settings in which the runs differ", {"setting", "values"}, 1);
  HtmlTable shared("Settings that all runs share", {"setting", "value"}, 1);
  std::size_t different = 0, equal = 0;
  for (const auto& [key, values] : settings) {
    std::size_t with = 0;
    for (const auto& [text, runs] : values) with += runs;
    const std::string name = concat("<code>", html_text(key, kLongestValue), "</code>");
    if (values.size() == 1 && with == known) {
      ++equal;
      shared.row({name, concat("<code>", html_text(values.begin()->first, 200), "</code>")});
    } else {
      ++different;
      differ.row({name, values_text(values, known - with)});
    }
  }
  if (different + equal == 0) return section;
  section.body = "<div class=\"words\">";
  if (different > 0) section.body += std::move(differ).html();
  if (equal > 0)
    section.body += html_details(concat(counted(equal, "setting"), " that all runs share"),
                                 std::move(shared).html(), report.runs.size() == 1);
  section.body += "</div>\n";
  return section;
}

}  // namespace pipewright
