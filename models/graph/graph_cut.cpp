// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_schema.h"

namespace pipewright {
namespace {

/// What each node's operator does with memory, and the value that was first in each memory.
class GraphMemory {
 public:
  /// Throws Error{Data} with a node's place if an operator is unknown.
  explicit GraphMemory(const GraphFile& file);

  /// The earliest value that may lie in the same memory as `name`, by whatever view.
  std::string root(std::string name) const;
  /// The roots of the values that node `i` writes into.
  std::vector<std::string> written(std::size_t i) const;

 private:
  /// Values that the node takes as one of these arguments.
  std::vector<std::string> given(std::size_t i, const std::set<std::string>& arguments) const;

  const GraphFile& file_;
  std::vector<OperatorUse> uses_;
  std::map<std::string, std::string> earlier_;  ///< value → another one in its memory
};

GraphMemory::GraphMemory(const GraphFile& file) : file_(file) {
  std::map<std::string, std::size_t> made;
  for (const GraphInput& input : file.inputs) made[input.name] = 0;
  for (std::size_t i = 0; i < file.nodes.size(); ++i) {
    uses_.push_back(operator_use(file.nodes[i]));
    for (const GraphOutput& output : file.nodes[i].outputs) made[output.name] = i + 1;
    std::string first;
    const std::vector<std::string> shared = given(i, uses_[i].shares);
    for (const std::string& name : shared)
      if (first.empty() || made.at(name) < made.at(first)) first = name;
    for (const std::string& name : shared)
      if (name != first) earlier_[name] = first;
    for (const GraphOutput& output : file.nodes[i].outputs)
      if (!first.empty()) earlier_[output.name] = first;
  }
}

std::string GraphMemory::root(std::string name) const {
  for (auto at = earlier_.find(name); at != earlier_.end(); at = earlier_.find(name))
    name = at->second;
  return name;
}

std::vector<std::string> GraphMemory::written(std::size_t i) const {
  return given(i, uses_[i].writes);
}

std::vector<std::string> GraphMemory::given(std::size_t i,
                                            const std::set<std::string>& arguments) const {
  std::vector<std::string> roots;
  for (const auto& [name, argument] : file_.nodes[i].arguments)
    if (arguments.contains(name))
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind == "value") roots.push_back(root(to.name));
      });
  return roots;
}

/// Nodes whose results depend on constants and on the size of the batch alone: masks, positions.
/// They are computed again wherever they are read, instead of crossing a cut.
class ConstantNodes {
 public:
  ConstantNodes(const GraphFile& file, const GraphMemory& memory);

  bool makes(const std::string& value) const { return values_.contains(value); }
  /// The nodes before `first` that the nodes [first, last) need, in order.
  std::vector<std::size_t> needed(std::size_t first, std::size_t last) const;

 private:
  bool is_constant(const GraphNode& node) const;

  const GraphFile& file_;
  const GraphMemory& memory_;
  std::set<std::string> values_;
  std::set<std::string> spoilt_;  ///< roots of memory that other nodes write into
  std::vector<bool> nodes_;
};

ConstantNodes::ConstantNodes(const GraphFile& file, const GraphMemory& memory)
    : file_(file), memory_(memory) {
  // Data that is written into the memory of a constant makes it none, and all that is made of it.
  std::size_t known = 0;
  do {
    known = spoilt_.size();
    values_.clear();
    nodes_.assign(file.nodes.size(), false);
    for (std::size_t i = 0; i < file.nodes.size(); ++i) {
      nodes_[i] = is_constant(file.nodes[i]);
      for (const GraphOutput& output : file.nodes[i].outputs)
        if (nodes_[i]) values_.insert(output.name);
      for (const std::string& written : memory.written(i))
        if (!nodes_[i]) spoilt_.insert(written);
    }
  } while (spoilt_.size() > known);
}

bool ConstantNodes::is_constant(const GraphNode& node) const {
  if (is_dropout(node.name)) return false;
  bool constant = true;
  for (const auto& [name, argument] : node.arguments)
    for_each_reference(argument, [&](const GraphReference& to) {
      constant = constant && (to.kind == "constant" || (to.kind == "value" && makes(to.name)));
    });
  return constant && std::ranges::none_of(node.outputs, [&](const GraphOutput& output) {
           return spoilt_.contains(memory_.root(output.name));
         });
}

std::vector<std::size_t> ConstantNodes::needed(std::size_t first, std::size_t last) const {
  std::set<std::string> memory;
  const auto read = [&](const GraphNode& node) {
    for (const auto& [name, argument] : node.arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind == "value" && makes(to.name)) memory.insert(memory_.root(to.name));
      });
  };
  for (std::size_t i = first; i < last; ++i) read(file_.nodes[i]);
  std::vector<std::size_t> found;
  for (std::size_t i = first; i-- > 0;) {
    if (!nodes_[i] || std::ranges::none_of(file_.nodes[i].outputs, [&](const GraphOutput& output) {
          return memory.contains(memory_.root(output.name));
        }))
      continue;
    read(file_.nodes[i]);
    found.push_back(i);
  }
  std::ranges::reverse(found);
  return found;
}

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
