// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_schema.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "core/base/error_at.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_operators.h"

namespace pipewright {
namespace {

/// Refuses a node that changes one of the model's own tensors, which other forwards read.
void check_written(const GraphNode& node, const std::set<std::string>& writes) {
  for (const auto& [name, argument] : node.arguments)
    if (const GraphReference to = reference_of(argument);
        writes.contains(name) && to.kind != "value")
      throw data_error(node.where, "writes into the ", to.kind.empty() ? "number" : to.kind, " '",
                       to.name, "'; expected a value that a node makes");
}

}  // namespace

OperatorUse operator_use(const GraphNode& node) {
  const auto found = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
  if (!found)
    throw data_error(node.where, "this LibTorch has no operator '", node.name,
                     "' with the overload '", node.overload, "'; the file has ", node.schema);
  if (const std::string reason = reason_against(*found); !reason.empty())
    throw data_error(node.where, "a graph may not call '", node.name, "', which ", reason,
                     " (docs/formats/graph.md)");
  OperatorUse use;
  const bool silent = shares_silently(*found);
  for (const c10::Argument& argument : found->schema().arguments()) {
    if (silent) use.shares.insert(argument.name());
    if (argument.alias_info() == nullptr) continue;
    if (argument.alias_info()->isWrite()) use.writes.insert(argument.name());
    use.shares.insert(argument.name());
  }
  check_written(node, use.writes);
  return use;
}

}  // namespace pipewright
