// SPDX-License-Identifier: Apache-2.0
/// Nodes that draw random numbers: they draw from the streams of the run's seed, so that they drop
/// the same in every execution and at any cut.
#pragma once

#include "models/graph/graph_call.h"

namespace pipewright {

/// The layers that draw for the node, in order: one, or of a recurrent operator one between every
/// two of its layers; none if the node draws nothing. The operator itself then drops nothing any
/// more. Throws Error{Data} with the node's place if it draws in a way that no stream of ours
/// reaches.
std::vector<LayerPtr> drops_of(GraphCall& call);

/// Names the streams that the node's layers draw from, after the node's layer and its value.
void name_drops(const GraphCall& call, const std::string& layer);

/// Runs a node with `call.drops`. It draws only where the pass trains.
void run_dropping(const GraphCall& call, GraphFrame& frame, const Pass& pass);

/// Whether a node with `call.drops` draws in this pass.
bool draws(const GraphCall& call, const Pass& pass);

}  // namespace pipewright
