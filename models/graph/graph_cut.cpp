// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "models/graph/graph_memory.h"

namespace pipewright {
namespace {

using Places = std::map<std::string, std::size_t>;

/// When each value is made (node + 1; an input at 0) and when it is last read.
struct Lives {
  Places made, read;

  explicit Lives(const GraphFile& file) {
    for (const GraphInput& input : file.inputs) made[input.name] = 0;
    for (std::size_t i = 0; i < file.nodes.size(); ++i) {
      for (const auto& [name, argument] : file.nodes[i].arguments)
        for_each_reference(argument, [&](const GraphReference& to) {
          if (to.kind == "value") read[to.name] = i + 1;
        });
      for (const GraphOutput& output : file.nodes[i].outputs) made[output.name] = i + 1;
    }
    read[file.output] = file.nodes.size() + 1;
  }

  /// The values that exist before node `place` and are read from it on; the last made first.
  std::vector<std::string> crossing(std::size_t place, const ConstantNodes& constants) const {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const auto& [name, when] : made)
      if (const auto last = read.find(name);
          when <= place && last != read.end() && last->second > place && !constants.makes(name))
        found.emplace_back(when, name);
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<std::string> names;
    for (auto& [when, name] : found) names.push_back(std::move(name));
    return names;
  }
};

/// Forbids the places in (from, to], where place p lies before node p.
void forbid(std::vector<bool>& open, std::size_t from, std::size_t to) {
  for (std::size_t place = from + 1; place <= to && place < open.size(); ++place)
    open[place] = false;
}

/// Forbids places between the making of memory and a write into it, through whatever view.
void forbid_writes(const GraphFile& file, const GraphMemory& memory, const Lives& lives,
                   std::vector<bool>& open) {
  for (std::size_t i = 0; i < file.nodes.size(); ++i)
    for (const std::string& name : memory.written(i)) {
      const std::size_t since = lives.made.at(name);
      if (since <= i) forbid(open, since == 0 ? 0 : since - 1, i);
    }
}

/// Forbids places between two uses of one parameter or buffer: a stage owns its tensors, but for
/// the parameters `parted`.
void forbid_parting(const GraphFile& file, const std::set<std::string>& parted,
                    std::vector<bool>& open) {
  Places since;
  for (std::size_t i = 0; i < file.nodes.size(); ++i)
    for (const auto& [name, argument] : file.nodes[i].arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind != "parameter" && to.kind != "buffer") return;
        if (to.kind == "parameter" && parted.contains(to.name)) return;
        const auto [first, fresh] = since.emplace(to.name, i);
        if (!fresh) forbid(open, first->second, i);
      });
}

void forbid_shapes(const GraphFile& file, const Lives& lives, const ConstantNodes& constants,
                   std::vector<bool>& open) {
  std::set<std::string> by_sample;
  for (const GraphInput& input : file.inputs) by_sample.insert(input.name);
  for (const GraphNode& node : file.nodes)
    for (const GraphOutput& output : node.outputs)
      if (output.by_sample()) by_sample.insert(output.name);
  for (std::size_t place = 1; place < open.size(); ++place) {
    if (!open[place]) continue;
    const auto crossing = lives.crossing(place, constants);
    open[place] = !crossing.empty() && std::ranges::all_of(crossing, [&](const std::string& name) {
      return by_sample.contains(name);
    });
  }
}

/// Whether `path` is `outer` or a module inside it.
bool is_within(const std::string& path, const std::string& outer) {
  return outer.empty() || path == outer || path.starts_with(outer + ".");
}

/// The name of each node's layer. Nodes of an outer module go with those before them.
std::vector<std::string> layer_names(const GraphFile& file, int depth) {
  std::vector<std::string> names;
  for (const GraphNode& node : file.nodes) {
    const std::string path = shortened(node.module, depth);
    const bool outer = !names.empty() && is_within(names.back(), path);
    names.push_back(outer ? names.back() : path);
  }
  return names;
}

}  // namespace

std::string shortened(const std::string& path, int depth) {
  std::size_t end = 0;
  for (int i = 0; i < depth && end != std::string::npos; ++i)
    end = path.find('.', end == 0 ? 0 : end + 1);
  return path.substr(0, end);
}

std::vector<GraphRun> graph_runs(const GraphFile& file, int depth,
                                 const std::set<std::string>& parted) {
  std::vector<bool> open(file.nodes.size(), true);
  const Lives lives(file);
  const GraphMemory memory(file);
  const ConstantNodes constants(file, memory);
  if (constants.makes(file.output))
    throw data_error(file.nodes.back().where, "the output depends on no data");
  const std::vector<std::string> names = layer_names(file, depth);
  for (std::size_t place = 1; place < open.size(); ++place)
    open[place] = names[place] != names[place - 1] && !names[place - 1].empty();
  forbid_writes(file, memory, lives, open);
  forbid_parting(file, parted, open);
  forbid_shapes(file, lives, constants, open);
  std::vector<GraphRun> runs;
  std::map<std::string, int> uses;
  for (std::size_t place = 0; place < open.size(); ++place) {
    if (place > 0 && !open[place]) continue;
    if (!runs.empty()) runs.back().last = place;
    std::string name = names[place].empty() ? "forward" : names[place];
    if (const int before = uses[name]++; before > 0) name += concat("#", before + 1);
    runs.push_back({.name = name,
                    .first = place,
                    .last = open.size(),
                    .again = {},
                    .enters = {},
                    .leaves = {}});
  }
  const auto crossing = [&](std::size_t place) { return lives.crossing(place, constants); };
  std::vector<std::string> inputs;
  for (const GraphInput& input : file.inputs) inputs.push_back(input.name);
  for (GraphRun& run : runs) {
    run.again = constants.needed(run.first, run.last);
    run.enters = run.first == 0 ? inputs : crossing(run.first);
    run.leaves = run.last == open.size() ? std::vector{file.output} : crossing(run.last);
  }
  return runs;
}

}  // namespace pipewright
