// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_ties.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

/// Parameters that several modules use, first the one between whose uses most nodes lie.
std::vector<std::string> shared_parameters(const GraphFile& file, int depth) {
  struct Uses {
    std::size_t first = 0, last = 0;
    std::set<std::string> modules;
  };
  std::map<std::string, Uses> all;
  for (std::size_t i = 0; i < file.nodes.size(); ++i)
    for (const auto& [name, argument] : file.nodes[i].arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind != "parameter") return;
        Uses& uses = all.try_emplace(to.name, Uses{.first = i}).first->second;
        uses.last = i;
        uses.modules.insert(shortened(file.nodes[i].module, depth));
      });
  std::vector<std::string> shared;
  for (const auto& [name, uses] : all)
    if (uses.modules.size() > 1) shared.push_back(name);
  std::ranges::stable_sort(shared, std::ranges::greater{}, [&](const std::string& name) {
    return all.at(name).last - all.at(name).first;
  });
  return shared;
}

/// The runs that use each of the parameters, of those that several do.
using Users = std::map<std::string, std::vector<std::size_t>>;

Users users_of(const GraphFile& file, const std::vector<GraphRun>& runs,
               const std::set<std::string>& parameters) {
  Users users;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::size_t node = runs[run].first; node < runs[run].last; ++node)
      for (const auto& [name, argument] : file.nodes[node].arguments)
        for_each_reference(argument, [&](const GraphReference& to) {
          if (to.kind != "parameter" || !parameters.contains(to.name)) return;
          std::vector<std::size_t>& all = users[to.name];
          if (all.empty() || all.back() != run) all.push_back(run);
        });
  std::erase_if(users, [](const auto& each) { return each.second.size() < 2; });
  return users;
}

std::string in_layer(const std::string& parameter) {
  return "." + parameter;  // a full name (parameter_name())
}

/// What each run's layer lends and borrows; nothing if what is lent is no stack.
std::optional<std::vector<Sharing>> lending(const Users& users, std::size_t runs) {
  std::vector<Sharing> all(runs);
  std::vector<std::string> stack;
  const auto last = [&](const std::string& name) { return users.at(name).back(); };
  for (std::size_t run = 0; run < runs; ++run) {
    Sharing& shares = all[run];
    for (; !stack.empty() && last(stack.back()) == run; stack.pop_back())
      shares.takes.push_back(in_layer(stack.back()));
    for (std::size_t depth = 0; depth < stack.size(); ++depth) {
      const std::string& name = stack[stack.size() - 1 - depth];
      if (!std::ranges::binary_search(users.at(name), run)) continue;
      if (last(name) == run || shares.looks.size() != depth) return std::nullopt;
      shares.looks.push_back(in_layer(name));
    }
    const auto behind = std::ssize(stack);
    for (const auto& [name, those] : users)
      if (those.front() == run) stack.push_back(name);
    std::stable_sort(stack.begin() + behind, stack.end(),
                     [&](const std::string& a, const std::string& b) { return last(a) > last(b); });
    for (auto lent = stack.begin() + behind; lent != stack.end(); ++lent)
      shares.lends.push_back(in_layer(*lent));
  }
  return all;
}

std::vector<Sharing> copying(const Users& users, std::size_t runs, bool gradients) {
  std::vector<Sharing> all(runs);
  for (const auto& [name, those] : users)
    for (std::size_t i = 1; i < those.size(); ++i)
      all[those[i]].copies.push_back({.parameter = in_layer(name),
                                      .name = concat(in_layer(name), "#", i + 1),
                                      .of = name,
                                      .gradients = gradients});
  return all;
}

}  // namespace

TiedRuns tied_runs(const GraphFile& file, int depth, Tie tie) {
  TiedRuns made{.kept = shared_parameters(file, depth)};
  std::set<std::string> parted;
  const auto users = [&] {
    made.runs = graph_runs(file, depth, parted);
    return users_of(file, made.runs, parted);
  };
  if (tie == Tie::Same)
    std::erase_if(made.kept, [&](const std::string& each) {
      parted.insert(each);
      const Users tried = users();
      if (lending(tried, made.runs.size())) return true;
      parted.erase(each);
      return false;
    });
  else if (tie != Tie::None)
    parted = {std::move_iterator(made.kept.begin()), std::move_iterator(made.kept.end())};
  if (tie == Tie::Start || tie == Tie::Late) made.kept.clear();
  const Users all = users();
  made.shares = tie == Tie::Same ? lending(all, made.runs.size()).value()
                                 : copying(all, made.runs.size(), tie == Tie::Late);
  return made;
}

std::string why_so_few(const GraphFile& file, int depth, Tie tie) {
  const std::vector<std::string> kept = tied_runs(file, depth, tie).kept;
  if (kept.empty()) return concat("; a greater model.depth than ", depth, " makes more of them");
  if (tie == Tie::Same)
    return concat(
        "; what model.tie: same lends must nest like brackets, so no cut lies between "
        "the uses of '",
        join(kept, "', '"),
        "' (with model.tie: late, or untied by import_torch.py --untie, it may)");
  std::vector<std::string> modules;
  for (const GraphNode& node : file.nodes)
    for (const auto& [name, argument] : node.arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind == "parameter" && to.name == kept[0]) modules.push_back(node.module);
      });
  return concat("; '", kept[0], "' is used by the modules '", modules.front(), "' and '",
                modules.back(),
                "', and no cut lies between them (model.tie says how one may; import_torch.py "
                "--untie makes a parameter for each)");
}

}  // namespace pipewright
