// SPDX-License-Identifier: Apache-2.0
/// What the schema of a node's operator says about its arguments.
#pragma once

#include <set>
#include <string>

#include "models/graph/graph_file.h"

namespace pipewright {

struct OperatorUse {
  std::set<std::string> writes;  ///< arguments whose memory the operator changes
  std::set<std::string> shares;  ///< arguments whose memory an output may be
};

/// Throws Error{Data} with the node's place if the operator is not one that a graph may call, or
/// this LibTorch has none of that name.
OperatorUse operator_use(const GraphNode& node);

}  // namespace pipewright
