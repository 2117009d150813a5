// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/grouped_parameters.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/optim/optimizer_groups.h"
#include "core/stage/stage.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostNamed = 3;  // parameters in a message

NamedShapes parameters_of(const Experiment& e) {
  if (e.layout.balance.empty()) return parameter_shapes(e.layers);
  NamedShapes all;
  for (const std::vector<LayerPtr>& stage : e.stage_layers_and_heads())
    std::ranges::move(parameter_shapes(stage), std::back_inserter(all));
  return all;
}

/// Letters to be changed, added or left out until the glob matches; what * stands for is free.
std::size_t distance(std::string_view name, std::string_view glob) {
  std::vector<std::size_t> row(name.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char wanted : glob) {
    const bool any = wanted == '*';
    std::size_t diagonal = row[0];
    if (!any) ++row[0];
    for (std::size_t i = 1; i <= name.size(); ++i) {
      const std::size_t kept = diagonal + (wanted != '?' && wanted != name[i - 1] ? 1 : 0);
      diagonal = row[i];
      row[i] = any ? std::min(row[i], row[i - 1]) : std::min({kept, row[i] + 1, row[i - 1] + 1});
    }
  }
  return row.back();
}

std::string listed_names(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamed);
  const std::string text = join(std::span(names).first(shown), ", ");
  return names.size() > shown ? concat(text, " and ", names.size() - shown, " more") : text;
}

/// The names nearest to a glob that matches none.
std::string nearest_names(std::string_view glob, const NamedShapes& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, shape] : parameters) names.push_back(name);
  std::ranges::stable_sort(names, {},
                           [&](const std::string& name) { return distance(name, glob); });
  names.resize(std::min(names.size(), kMostNamed));
  return join(names, ", ");
}

}  // namespace

std::string dotted(const std::string& option) {
  std::string path;
  for (const char c : option)
    if (c != ']') path += c == '[' ? '.' : c;
  return path;
}

std::vector<GroupShare> group_shares(const Experiment& e) {
  const auto groups = e.optimizer->groups();
  std::vector<GroupShare> shares;
  for (const OptimizerGroup& group : groups) shares.push_back({.option = group.option});
  if (groups.empty()) return shares;
  for (const auto& [name, shape] : parameters_of(e)) {
    const OptimizerGroup* const group = group_of(groups, name);
    if (group == nullptr) continue;
    GroupShare& share = shares[static_cast<std::size_t>(group - groups.data())];
    ++share.tensors;
    share.parameters +=
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  return shares;
}

void check_groups(const Experiment& e, const Value& document, Problems& problems) {
  const auto groups = e.optimizer->groups();
  if (groups.empty()) return;
  const NamedShapes parameters = parameters_of(e);
  const auto refuse = [&](const std::string& option, const std::string& message) {
    problems.add(place_in(document, dotted(option)), concat(option, message));
  };
  const std::vector<GroupShare> shares = group_shares(e);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].option == "optimizer") continue;  // the rest may be nothing
    bool all = true;
    for (const std::string& glob : groups[i].match) {
      const auto matched = [&](const auto& each) { return matches_glob(each.first, glob); };
      if (std::ranges::any_of(parameters, matched)) continue;
      all = false;
      refuse(groups[i].option, concat(".match has '", glob, "', but no parameter is called so; ",
                                      "nearest are ", nearest_names(glob, parameters)));
    }
    if (all && shares[i].tensors == 0 && !groups[i].match.empty())
      refuse(groups[i].option,
             ".match has only parameters that an earlier group has; expected it before that one");
  }
  for (const LayerPtr& layer : e.layers)
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      const auto* const own = group_of(groups, name);
      const auto* const first = group_of(groups, spec.copied ? spec.drawn_as : name);
      if (own != first && own != nullptr && first != nullptr)
        refuse(own->option, concat(" has '", name, "', a copy of '", spec.drawn_as,
                                   "' (model.tie: late), which is in ", first->option,
                                   "; expected both in one group"));
    }
  std::vector<std::string> left;
  for (const auto& [name, shape] : parameters)
    if (group_of(groups, name) == nullptr) left.push_back(name);
  if (!left.empty())
    refuse("optimizer.groups",
           concat(" leave out ", listed_names(left),
                  "; expected a group for each parameter, or an optimizer.name for the rest"));
}

}  // namespace pipewright
