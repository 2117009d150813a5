// SPDX-License-Identifier: Apache-2.0
/// A layer that calls the operators of a graph's run one after another.
#pragma once

#include <memory>

#include "core/nn/layer.h"
#include "models/graph/graph_cut.h"

namespace pipewright {

/// The layer of `run`, a run of `file`. Its parameters have the module's own names, whatever the
/// layer's name is. Throws Error{Data} with a node's place if an argument does not fit the
/// operator's schema.
LayerPtr graph_layer(std::shared_ptr<const GraphFile> file, const GraphRun& run);

}  // namespace pipewright
