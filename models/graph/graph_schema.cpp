// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_schema.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "core/base/error.h"
#include "models/graph/graph_operators.h"

namespace pipewright {

OperatorUse operator_use(const GraphNode& node) {
  if (!is_allowed_operator(node.name))
    throw Error(ErrorKind::Data,
                concat("'", node.name,
                       "' is not among the operators that a graph may call "
                       "(docs/formats/graph.md)"),
                node.where);
  const auto found = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
  if (!found)
    throw Error(ErrorKind::Data,
                concat("this LibTorch has no operator '", node.name, "' with the overload '",
                       node.overload, "'; the file has ", node.schema),
                node.where);
  OperatorUse use;
  for (const c10::Argument& argument : found->schema().arguments()) {
    if (argument.alias_info() == nullptr) continue;
    if (argument.alias_info()->isWrite()) use.writes.insert(argument.name());
    use.shares.insert(argument.name());
  }
  if (is_dropout(node.name)) use.shares.insert("input");  // the input itself in evaluation
  return use;
}

}  // namespace pipewright
