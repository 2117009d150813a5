// SPDX-License-Identifier: Apache-2.0
/// A node, matched with the operator of this LibTorch, and the tensors of a forward that it works
/// on.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <span>
#include <vector>

#include "core/nn/layer.h"
#include "models/graph/graph_matching.h"

namespace pipewright {

/// What the operators of one forward share.
struct GraphFrame {
  std::vector<at::Tensor> tensors;
  std::int64_t batch = 0;
  at::ScalarType type = at::kFloat;  ///< of activations
  at::Device device = at::kCPU;

  std::int64_t of(const GraphSize& size) const { return size[0] * batch + size[1]; }
};

/// What is to be done for a node besides calling its operator.
enum class CallKind : std::uint8_t {
  Plain,
  View,       ///< of what has crossed a cut, which is contiguous
  BatchNorm,  ///< computed here
  LayerNorm,  ///< in the form of gpu_forms.h
  AverageTo,  ///< likewise
  Dropout     ///< computed here
};
CallKind kind_of(const GraphNode& node);

/// A node whose arguments are matched with its operator's schema.
struct GraphCall {
  const GraphNode* node = nullptr;
  CallKind kind = CallKind::Plain;
  std::optional<c10::OperatorHandle> handle;
  std::vector<MatchedArgument> arguments;  ///< one for each argument of the schema
  std::vector<std::size_t> outputs;        ///< places in the frame
  std::vector<std::size_t> ends;           ///< places whose values no later call reads
  std::vector<LayerPtr> drops;  ///< of a node that draws random numbers, one for each place

  /// The argument of that name, or null if the operator has none.
  const MatchedArgument* argument(const std::string& name) const;
  MatchedArgument* argument(const std::string& name);

  /// The value of an argument in a forward.
  c10::IValue value(const MatchedArgument& from, const GraphFrame& frame, const Pass& pass) const;
  c10::IValue value(const std::string& name, const GraphFrame& frame, const Pass& pass) const;
  at::Tensor tensor(const std::string& name, const GraphFrame& frame, const Pass& pass) const;

  /// The tensors among the arguments, also inside lists.
  std::vector<at::Tensor> tensors(const GraphFrame& frame) const;

  /// The values of all arguments in a forward.
  c10::Stack given(const GraphFrame& frame, const Pass& pass) const;

  /// Replaces the arguments on the stack by the operator's results.
  void compute(c10::Stack& stack) const;

  /// Calls the operator and stores what it returns.
  void run(GraphFrame& frame, const Pass& pass) const;

  /// Stores the tensors that the operator has put on the stack, also those inside lists.
  void store(c10::Stack& returned, GraphFrame& frame) const;

  /// Stores the operator's results. Throws Error{Data} if they have other shapes than the file
  /// says.
  void store(std::span<at::Tensor> made, GraphFrame& frame) const;
};

}  // namespace pipewright
