// SPDX-License-Identifier: Apache-2.0
#include "tools/drawing_title.h"

#include "core/base/text.h"
#include "core/experiment/catalogue.h"

namespace pipewright {

std::string drawing_title(const Experiment& experiment) {
  const Value& scheme = *experiment.resolved.find("scheme");
  const std::string name = scheme.find("name")->text;
  std::string title = concat(experiment.name, ": ", name);
  for (const OptionInfo& option : part_options("scheme", name)) {
    const Value* value = scheme.find(option.name);
    if (value == nullptr || option.name == "name" || *value == option.fallback) continue;
    const bool text = value->is(Value::Kind::Text);
    title += concat(", ", option.name, " ", text ? value->text : to_json(*value));
  }
  return title;
}

}  // namespace pipewright
