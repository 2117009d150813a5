// SPDX-License-Identifier: Apache-2.0
#include "tools/drawing_title.h"

#include <filesystem>

#include "core/base/text.h"
#include "core/experiment/catalogue.h"

namespace pipewright {
namespace {

/// A file without its folder, so that a drawing does not depend on where its files are.
std::string shown(const OptionInfo& option, const Value& value) {
  if (!value.is(Value::Kind::Text)) return to_json(value);
  if (option.type != OptionInfo::Type::Path) return value.text;
  return std::filesystem::path(value.text).filename().string();
}

}  // namespace

std::string drawing_title(const Experiment& experiment) {
  const Value& scheme = *experiment.resolved.find("scheme");
  const std::string name = scheme.find("name")->text;
  std::string title = concat(experiment.name, ": ", name);
  for (const OptionInfo& option : part_options("scheme", name)) {
    const Value* value = scheme.find(option.name);
    if (value == nullptr || option.name == "name" || *value == option.fallback) continue;
    title += concat(", ", option.name, " ", shown(option, *value));
  }
  return title;
}

}  // namespace pipewright
