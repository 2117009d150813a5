// SPDX-License-Identifier: Apache-2.0
#include "core/config/experiment_keys.h"

#include <algorithm>

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

/// The first key of a line: "model" of "model: …", "{"model": …" and "'model' : …"; "" where no ':'
/// follows.
std::string_view first_key(std::string_view line) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  const std::size_t begin = line.find_first_not_of(" \t{\"'\xEF\xBB\xBF");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(line.find_first_not_of(kLetters, begin), line.size());
  const std::size_t after = line.find_first_not_of(" \t\"'", end);
  const bool key = after != std::string_view::npos && line[after] == ':';
  return key ? line.substr(begin, end - begin) : std::string_view();
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
                                                  {"train"},
                                                  {"output"},
                                                  {"translation"},
                                                  {"probes"},
                                                  {"sweep", Composition, false},
                                                  {"table", Report, false},
                                                  {"plot", Report, false},
                                                  {"claims", Report, false},
                                                  {"hardware", Report, true}};
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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (is_section(first_key(text.substr(at, end - at)))) return true;
    at = end + 1;
  }
  return false;
}

bool is_experiment(const Value& document, bool near) {
  if (!document.is(Value::Kind::Mapping)) return false;
  const std::vector<std::string> names = experiment_key_names();
  return document.fields.empty() || std::ranges::any_of(document.fields, [&](const auto& field) {
           return is_section(field.first) || (near && !nearest(field.first, names).empty());
         });
}

}  // namespace pipewright
