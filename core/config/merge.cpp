// SPDX-License-Identifier: Apache-2.0
#include "core/config/merge.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/parsed.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

/// The steps of a dotted key. Below `sweep.grid` and `sweep.zip` the rest is one key, itself
/// dotted.
std::vector<std::string> steps_of(const std::string& dotted) {
  for (const std::string_view prefix : {"sweep.grid.", "sweep.zip."})
    if (dotted.starts_with(prefix))
      return {"sweep", std::string(prefix.substr(6, prefix.size() - 7)),
              dotted.substr(prefix.size())};
  return split(dotted, '.');
}

}  // namespace

Value merged(Value base, const Value& over) {
  const bool mappings = base.is(Value::Kind::Mapping) && over.is(Value::Kind::Mapping);
  if (!mappings || over.find("name") != nullptr) return over;
  return merged_keys(std::move(base), over);
}

Value merged_keys(Value base, const Value& over) {
  // The keys of `over` are distinct, so each is looked for only among those that `base` had before.
  std::unordered_map<std::string, std::size_t> before;
  for (std::size_t i = 0; i < base.fields.size(); ++i) before.emplace(base.fields[i].first, i);
  for (const auto& [key, value] : over.fields) {
    const auto known = before.find(key);
    if (known == before.end()) {
      base.fields.emplace_back(key, value);
    } else {
      Value& old = base.fields[known->second].second;
      old = merged(std::move(old), value);
    }
  }
  base.place = over.place;
  base.key_line = over.key_line;
  base.key_column = over.key_column;
  return base;
}

void set_path(Value& document, const std::string& dotted, const Value& value, Problems& problems) {
  const std::vector<std::string> steps = steps_of(dotted);
  const Place place = value.key_place();
  const auto empty = [](const std::string& step) { return trimmed(step).empty(); };
  if (std::ranges::any_of(steps, empty) || steps.size() > kDeepestNesting) {
    problems.add(place, concat("the key '", dotted.substr(0, 60),
                               "' is not names joined by dots, such as 'pipeline.stages'"));
    return;
  }
  Value* target = &document;
  std::string walked;
  for (const std::string& step : steps) {
    if (target->is(Value::Kind::Null)) {  // an empty section
      const Place section = target->place;
      *target = Value::mapping();
      target->place = section.line > 0 ? section : value.place;
    }
    const auto index = parsed<std::size_t>(step);
    if (target->is(Value::Kind::Sequence) && index && *index < target->items.size()) {
      target = &target->items[*index];
    } else if (target->is(Value::Kind::Mapping)) {
      target = &target->at_or_add(step);
    } else {
      problems.add(
          place, concat("'", dotted, "' cannot be set: ", walked.empty() ? "the document" : walked,
                        " is ", target->shown(),
                        target->is(Value::Kind::Sequence)
                            ? concat(" of ", target->items.size(), ", which are counted from 0")
                            : ", not a mapping"));
      return;
    }
    walked += walked.empty() ? step : "." + step;
  }
  *target = merged(std::move(*target), value);
}

}  // namespace pipewright
