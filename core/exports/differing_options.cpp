// SPDX-License-Identifier: Apache-2.0
#include "core/exports/differing_options.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/config/json.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

using OptionTexts = std::map<std::string, std::string>;  // dotted key → value

OptionTexts compared_options(const RunRecord& run) {
  OptionTexts options = option_texts(run.config.whole());
  std::erase_if(options, [](const auto& option) {
    const std::string& key = option.first;
    return key == "name" || key.starts_with("output.") || key == "pipeline.balance" ||
           key == "pipeline.memory_format";
  });
  return options;
}

/// What the sweep varies in a run besides its seed and its label, which may have the seed in it.
std::string settings_text(const RunRecord& run) {
  std::string text;
  for (const auto& [key, value] : run.varied.fields)
    if (key != "train.seed" && key != "label") text += concat(key, " ", to_json(value), "\n");
  return text;
}

void add_differences(const OptionTexts& a, const OptionTexts& b, std::set<std::string>& keys) {
  for (const auto& [of, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const auto& [key, text] : *of)
      if (const auto same = other->find(key); same == other->end() || same->second != text)
        keys.insert(key);
}

/// Whether the option is the varied key, lies within its value, or follows from it.
bool follows(const std::string& key, const std::string& varied) {
  constexpr std::string_view kName = ".name";
  const bool chooses_part = varied.ends_with(kName);
  const std::string part = chooses_part ? varied.substr(0, varied.size() - kName.size()) : varied;
  return key == varied || key.starts_with(part + ".") ||
         (varied.starts_with("dataset.") && key.starts_with("model."));
}

}  // namespace

std::vector<std::string> differing_options(const std::vector<const RunRecord*>& runs) {
  std::set<std::string> varied, anywhere, among_equals;
  OptionTexts first;
  std::map<std::string, OptionTexts> of_settings;
  for (const RunRecord* const run : runs) {
    for (const auto& [key, value] : run->varied.fields) varied.insert(key);
    if (!run->config.known()) continue;
    OptionTexts options = compared_options(*run);
    if (first.empty()) first = options;
    add_differences(first, options, anywhere);
    const auto [equal, added] = of_settings.try_emplace(settings_text(*run), options);
    if (!added) add_differences(equal->second, options, among_equals);
  }
  std::erase_if(anywhere, [&](const std::string& key) {
    return varied.contains(key) ||
           (!among_equals.contains(key) &&
            std::ranges::any_of(varied, [&](const auto& each) { return follows(key, each); }));
  });
  return {anywhere.begin(), anywhere.end()};
}

void add_differing_options(std::vector<RunRecord>& runs) {
  const auto of_sweep = [](const RunRecord& run) { return !run.varied.fields.empty(); };
  if (std::ranges::none_of(runs, of_sweep)) return;
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  for (const std::string& key : differing_options(all))
    for (RunRecord& run : runs)
      if (run.config.known())
        if (std::optional<Value> value = run.config.find_path(key))
          run.varied.at_or_add(key) = *std::move(value);
}

}  // namespace pipewright
