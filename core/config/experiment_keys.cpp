// SPDX-License-Identifier: Apache-2.0
#include "core/config/experiment_keys.h"

#include <algorithm>

#include "core/config/file_kind.h"

namespace pipewright {
namespace {

/// A key that says nothing, because files of many other programs have it, too.
constexpr std::string_view kCommon = "name";

bool is_section(std::string_view key) {
  return key != kCommon && find_experiment_key(key) != nullptr;
}

/// The document without the keys that `unwanted` says are.
template <class Unwanted>
Value without_keys(Value document, const Unwanted& unwanted) {
  std::erase_if(document.fields, [&](const auto& field) {
    const ExperimentKey* key = find_experiment_key(field.first);
    return key != nullptr && unwanted(*key);
  });
  return document;
}

}  // namespace

const std::vector<ExperimentKey>& experiment_keys() {
  using enum KeyUse;
  static const std::vector<ExperimentKey> keys = {{"name", Option, false},
                                                  {"extends", Composition, false},
                                                  {"profiles", Composition, false},
                                                  {"dataset"},
                                                  {"loader"},
                                                  {"model"},
                                                  {"loss"},
                                                  {"metrics"},
                                                  {"pipeline"},
                                                  {"scheme"},
                                                  {"optimizer"},
                                                  {"lr_schedule"},
                                                  {"gradient_rules"},
                                                  {"train"},
                                                  {"perturb"},
                                                  {"output"},
                                                  {"translation"},
                                                  {"probes"},
                                                  {"sweep", Composition, false},
                                                  {"table", Shown, false},
                                                  {"plot", Shown, false},
                                                  {"claims", Shown, false},
                                                  {"hardware", Shown, true}};
  return keys;
}

const ExperimentKey* find_experiment_key(std::string_view name) {
  const auto found = std::ranges::find(experiment_keys(), name, &ExperimentKey::name);
  return found == experiment_keys().end() ? nullptr : &*found;
}

std::vector<std::string> experiment_key_names() {
  std::vector<std::string> names;
  for (const ExperimentKey& key : experiment_keys()) names.push_back(key.name);
  return names;
}

Value options_of_run(Value document) {
  return without_keys(std::move(document),
                      [](const ExperimentKey& key) { return key.use != KeyUse::Option; });
}

Value what_may_vary(Value document) {
  return without_keys(std::move(document), [](const ExperimentKey& key) {
    return key.use != KeyUse::Option && !key.may_vary;
  });
}

bool looks_like_experiment(std::string_view text) {
  return begins_with_key(text, is_section);
}

std::optional<Value> parse_if_experiment(std::string_view text, const std::string& name,
                                         Problems& faults) {
  return parse_if_known(text, name, is_section, faults);
}

bool is_experiment(const Value& document, bool near) {
  if (!document.is(Value::Kind::Mapping)) return false;
  const std::vector<std::string> names = experiment_key_names();
  return document.fields.empty() || std::ranges::any_of(document.fields, [&](const auto& field) {
           return is_section(field.first) || (near && !nearest(field.first, names).empty());
         });
}

}  // namespace pipewright
