// SPDX-License-Identifier: Apache-2.0
/// The file graph.json: somebody's PyTorch module as a list of operators, which
/// tools/import_torch.py writes (docs/formats/graph.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// {factor, constant}: a size of factor × batch + constant.
using GraphSize = std::array<std::int64_t, 2>;

/// A tensor that a node makes.
struct GraphOutput {
  std::string name;
  std::vector<GraphSize> shape;
  at::ScalarType type = at::kFloat;

  /// Whether it can cross a cut: its dimension 0 is the batch.
  bool by_sample() const { return !shape.empty() && shape[0] == GraphSize{1, 0}; }
};

/// A tensor that the data set gives, of the batch's samples.
struct GraphInput : GraphOutput {
  std::int64_t vocabulary = 0;  ///< of tokens, else 0

  std::vector<std::int64_t> sample_shape() const;
};

/// One operator of the graph.
struct GraphNode {
  std::string name;      ///< "aten::conv2d"
  std::string overload;  ///< "" or "Tensor"
  std::string schema;    ///< as the importing PyTorch wrote it
  std::string module;    ///< path of the module that called it; "" for the model's own forward
  std::vector<std::pair<std::string, Value>> arguments;
  std::vector<GraphOutput> outputs;
  std::string where;  ///< "net/graph.json, node 3 (aten::conv2d of module 'conv1')", for messages
};

/// The whole file. A name of a value is that of an input or of an output of an earlier node.
struct GraphFile {
  std::string torch;               ///< version of PyTorch that exported the module
  std::vector<GraphInput> inputs;  ///< one at least
  std::string output;
  std::vector<std::int64_t> output_shape;  ///< without the batch
  std::map<std::string, std::vector<std::int64_t>> parameters, buffers;
  std::map<std::string, at::Tensor> constants;
  std::vector<GraphNode> nodes;
};

/// What an argument refers to: {"value": "x"} and so on; the kind is "" if it is no reference.
struct GraphReference {
  std::string kind, name;
};
GraphReference reference_of(const Value& argument);

/// Calls `visit` for every reference among a node's arguments, also inside lists.
template <class Visit>
void for_each_reference(const Value& argument, const Visit& visit) {
  if (const GraphReference found = reference_of(argument); !found.kind.empty()) visit(found);
  for (const Value& item : argument.items) for_each_reference(item, visit);
}

/// The type that the file calls by that name ("float32", "int64", "bool"), if there is one.
std::optional<at::ScalarType> graph_type(std::string_view name);

/// Gives the constant of a name, or throws.
using FindConstant = std::function<at::Tensor(const std::string& name)>;

/// What the content of a graph.json says. `path` stands for the file in messages. Throws
/// Error{Data} that names the place if something is missing or refers to nothing.
GraphFile graph_of(const Value& document, const std::string& path, const FindConstant& constant);

/// Reads graph.json and constants.safetensors of a folder. Throws Error{Data} that names the file
/// and the place in it if something is missing, damaged, of another version or refers to nothing.
GraphFile read_graph(const std::filesystem::path& folder);

}  // namespace pipewright
