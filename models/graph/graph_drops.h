// SPDX-License-Identifier: Apache-2.0
/// Nodes that draw random numbers: they draw from the streams of the run's seed, so that they drop
/// the same in every execution and at any cut.
#pragma once

#include "models/graph/graph_call.h"

namespace pipewright {

/// The layer that draws for the node, or null if the node draws nothing. The operator of an
/// attention itself then drops nothing any more. Throws Error{Data} with the node's place if it
/// draws in a way that no stream of ours reaches.
LayerPtr drops_of(GraphCall& call);

/// Runs a node with `call.drops`. It draws only where the pass trains.
void run_dropping(const GraphCall& call, GraphFrame& frame, const Pass& pass);

/// Whether a node with `call.drops` draws in this pass.
bool draws(const GraphCall& call, const Pass& pass);

}  // namespace pipewright
