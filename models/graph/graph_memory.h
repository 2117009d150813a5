// SPDX-License-Identifier: Apache-2.0
/// Which values of a graph lie in one memory, and which depend on no data.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/graph/graph_file.h"
#include "models/graph/graph_schema.h"

namespace pipewright {

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

}  // namespace pipewright
