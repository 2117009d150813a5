// SPDX-License-Identifier: Apache-2.0
/// Nodes on the meta device, where profiles count memory and operations without either.
#pragma once

#include "models/graph/graph_call.h"

namespace pipewright {

/// Makes outputs of the shapes that the file says, because LibTorch has many operators on the meta
/// device in Python only. What a backward would keep is at most inputs and outputs, and of an
/// attention that drops, its scores. Counts the multiplications of products.
void run_on_meta(const GraphCall& call, GraphFrame& frame, const Pass& pass);

}  // namespace pipewright
