// SPDX-License-Identifier: Apache-2.0
/// Recurrent operators of several layers that drop between their layers.
#pragma once

#include <functional>

#include "models/graph/graph_call.h"

namespace pipewright {

/// Drops elements of what layer `layer` gives to the next one.
using DropBetween = std::function<at::Tensor(std::size_t layer, const at::Tensor& x)>;

/// Compares the shapes of input, states and parameters of a recurrent operator with each other,
/// because a kernel of LibTorch's reads and writes behind tensors that are too small. Throws
/// Error{Data} with the node's place, also for packed sequences, whose lengths are data.
void check_recurrent(const GraphCall& call, const GraphFrame& frame);

/// How many layers a recurrent node has. Throws Error{Data} with the node's place if its parameters
/// cannot be shared out among them.
std::int64_t recurrent_layers(const GraphCall& call);

/// Calls the operator for one layer after another, which computes what it computes at once: layer l
/// has rows [l·d, (l + 1)·d) of the states, where d is the number of directions, and an l-th part
/// of the parameters. Stores what the operator returns.
void run_by_layers(const GraphCall& call, GraphFrame& frame, const Pass& pass,
                   const DropBetween& drop);

}  // namespace pipewright
