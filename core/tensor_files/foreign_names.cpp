// SPDX-License-Identifier: Apache-2.0
#include "core/tensor_files/foreign_names.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensor_files/pattern.h"

namespace pipewright {

struct NameTranslation::Compiled {
  struct Step {
    Pattern match;
    std::string by;
  };
  std::vector<Step> names, instead;
  std::vector<Pattern> transposed, ignored;
};

namespace {

template <class Step>
std::vector<Step> steps(const std::vector<Rewrite>& rewrites) {
  std::vector<Step> all;
  for (const auto& [match, by] : rewrites) all.push_back({Pattern(match), by});
  return all;
}

std::vector<Pattern> compiled(const std::vector<std::string>& patterns) {
  return {patterns.begin(), patterns.end()};
}

/// Compiles patterns that match whole names only.
std::vector<Pattern> whole(const std::vector<std::string>& patterns) {
  std::vector<Pattern> all;
  for (const std::string& pattern : patterns) all.emplace_back(concat("^(?:", pattern, ")\\z"));
  return all;
}

}  // namespace

NameTranslation::NameTranslation(const ForeignNames& rules)
    : rules_(std::make_unique<Compiled>(Compiled{.names = steps<Compiled::Step>(rules.names),
                                                 .instead = steps<Compiled::Step>(rules.instead),
                                                 .transposed = compiled(rules.transposed),
                                                 .ignored = whole(rules.ignored)})) {}

NameTranslation::~NameTranslation() = default;

ForeignTensor NameTranslation::theirs(const std::string& our_name) const {
  if (our_name.starts_with("heads.")) return {};
  std::string name = our_name;
  for (const auto& [match, by] : rules_->names) name = match.replaced(name, by);
  ForeignTensor tensor{.names = {name}};
  for (const auto& [match, by] : rules_->instead) {
    name = match.replaced(name, by);
    if (name != tensor.names.back()) tensor.names.push_back(name);
  }
  tensor.transposed = std::ranges::any_of(
      rules_->transposed, [&](const Pattern& pattern) { return pattern.is_in(our_name); });
  return tensor;
}

bool NameTranslation::ignores(const std::string& their_name) const {
  return std::ranges::any_of(rules_->ignored,
                             [&](const Pattern& pattern) { return pattern.is_in(their_name); });
}

ForeignNamesRegistry& ForeignNamesRegistry::instance() {
  static ForeignNamesRegistry registry;
  return registry;
}

bool ForeignNamesRegistry::add(const std::string& model, const std::string& format, Make make) {
  PIPEWRIGHT_CHECK(makes_.emplace(std::pair(model, format), std::move(make)).second, "names of '",
                   model, "' for ", format, " are given twice");
  return true;
}

const ForeignNamesRegistry::Make* ForeignNamesRegistry::find(const std::string& model,
                                                             const std::string& format) const {
  const auto found = makes_.find({model, format});
  return found == makes_.end() ? nullptr : &found->second;
}

std::vector<std::string> ForeignNamesRegistry::formats(const std::string& model) const {
  std::vector<std::string> all;
  for (const auto& [key, make] : makes_)
    if (key.first == model) all.push_back(key.second);
  return all;
}

}  // namespace pipewright
