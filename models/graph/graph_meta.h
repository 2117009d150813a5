// SPDX-License-Identifier: Apache-2.0
/// Nodes on the meta device: a forward is verified there before it takes memory, and profiles count
/// memory and operations without either.
#pragma once

#include "models/graph/graph_call.h"

namespace pipewright {

/// Computes a node in a frame whose tensors have no memory, as an evaluation would, and compares
/// the shapes of all outputs with the file. Throws Error{Data} where they differ, where an output
/// would be too large, and where LibTorch's kernel would trust shapes that do not fit.
void verify_on_meta(const GraphCall& call, GraphFrame& frame);

/// Makes outputs of the shapes that the file says, for a profile. What a backward would keep is at
/// most inputs and outputs, and of an attention that drops, its scores. Counts the multiplications
/// of products.
void run_on_meta(const GraphCall& call, GraphFrame& frame, const Pass& pass);

}  // namespace pipewright
