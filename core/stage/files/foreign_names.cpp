#include "core/stage/files/foreign_names.h"

#include <algorithm>
#include <regex>

#include "core/base/error.h"

namespace pipewright {

struct NameTranslation::Compiled {
  struct Step {
    std::regex match;
    std::string by;
  };
  std::vector<Step> names, instead;
  std::vector<std::regex> transposed, ignored;
};

namespace {

std::regex compiled(const std::string& pattern) {
  return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
}

template <class Step>
std::vector<Step> steps(const std::vector<Rewrite>& rewrites) {
  std::vector<Step> all;
  for (const auto& [match, by] : rewrites) all.push_back({compiled(match), by});
  return all;
}

std::vector<std::regex> compiled(const std::vector<std::string>& patterns) {
  std::vector<std::regex> all;
  for (const std::string& pattern : patterns) all.push_back(compiled(pattern));
  return all;
}

}  // namespace

NameTranslation::NameTranslation(const ForeignNames& rules)
    : rules_(std::make_unique<Compiled>(Compiled{.names = steps<Compiled::Step>(rules.names),
                                                 .instead = steps<Compiled::Step>(rules.instead),
                                                 .transposed = compiled(rules.transposed),
                                                 .ignored = compiled(rules.ignored)})) {}

NameTranslation::~NameTranslation() = default;

ForeignTensor NameTranslation::of(const std::string& our_name) const {
  if (our_name.starts_with("heads.")) return {};
  std::string name = our_name;
  for (const auto& [match, by] : rules_->names) name = std::regex_replace(name, match, by);
  ForeignTensor tensor{.names = {name}};
  for (const auto& [match, by] : rules_->instead) {
    name = std::regex_replace(name, match, by);
    if (name != tensor.names.back()) tensor.names.push_back(name);
  }
  tensor.transposed = std::ranges::any_of(rules_->transposed, [&](const std::regex& pattern) {
    return std::regex_search(our_name, pattern);
  });
  return tensor;
}

bool NameTranslation::ignores(const std::string& their_name) const {
  return std::ranges::any_of(rules_->ignored, [&](const std::regex& pattern) {
    return std::regex_match(their_name, pattern);
  });
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
