// SPDX-License-Identifier: Apache-2.0
/// Arguments of a graph's nodes, matched with the schema of the operator that this LibTorch has.
#pragma once

#include <ATen/core/function_schema.h>

#include <functional>
#include <vector>

#include "models/graph/graph_file.h"

namespace pipewright {

/// Where an argument of an operator comes from when its layer runs.
struct MatchedArgument {
  enum class Source : std::uint8_t { Constant, Frame, List, Size, Sizes, Switch, Type, Device };
  Source source = Source::Constant;
  c10::IValue constant;
  std::size_t place = 0;               ///< in the frame
  GraphSize size{};                    ///< factor × batch + constant
  std::vector<MatchedArgument> items;  ///< of a list of tensors or of sizes
  bool optional = false;               ///< the list has optional tensors
};

/// Gives the place of a reference in the frame: the tensors of one forward.
using PlaceOf = std::function<std::size_t(const GraphReference&)>;

/// One for each argument of the schema, in its order; arguments that the node does not have get
/// their defaults. Throws Error{Data} with the node's place if an argument is missing, unknown or
/// of another type.
std::vector<MatchedArgument> matched_arguments(const GraphNode& node,
                                               const c10::FunctionSchema& schema,
                                               const PlaceOf& place_of);

}  // namespace pipewright
