// SPDX-License-Identifier: Apache-2.0
#include "core/config/experiment_keys.h"

#include <algorithm>

namespace pipewright {
namespace {

/// A key that says nothing, because files of many other programs have it, too.
constexpr std::string_view kCommon = "name";

bool is_section(std::string_view key) {
  return key != kCommon && std::ranges::count(experiment_keys(), key) > 0;
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

const std::vector<std::string>& experiment_keys() {
  static const std::vector<std::string> keys = {
      "name",     "extends",        "dataset",  "loader",    "model",       "loss",
      "metrics",  "pipeline",       "scheme",   "optimizer", "lr_schedule", "train",
      "output",   "translation",    "probes",   "sweep",     "table",       "plot",
      "profiles", "gradient_rules", "hardware", "claims"};
  return keys;
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
  return document.fields.empty() || std::ranges::any_of(document.fields, [&](const auto& field) {
           return is_section(field.first) ||
                  (near && !nearest(field.first, experiment_keys()).empty());
         });
}

}  // namespace pipewright
