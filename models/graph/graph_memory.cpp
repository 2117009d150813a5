// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_memory.h"

#include <algorithm>

#include "models/graph/graph_operators.h"

namespace pipewright {

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

}  // namespace pipewright
