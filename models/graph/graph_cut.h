// SPDX-License-Identifier: Apache-2.0
/// The layers of a graph: runs of consecutive nodes with one module path, between which a pipeline
/// may be cut.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "models/graph/graph_file.h"

namespace pipewright {

/// Nodes [first, last), earlier ones that are computed again for them, because their results depend
/// on no data, and what crosses the run's two ends, the value made last first.
struct GraphRun {
  std::string name;
  std::size_t first = 0, last = 0;
  std::vector<std::size_t> again;
  std::vector<std::string> enters, leaves;
};

/// The first `depth` parts of a module path.
std::string shortened(const std::string& path, int depth);

/// Divides the nodes where the first `depth` parts of the module path change. Places are left out
/// where a cut would change the result: where a tensor that exists is written in place behind it,
/// by any of its views; where both sides read one parameter or one batch norm's statistics; and
/// where what crosses does not have the batch as its dimension 0. A node of an outer module goes
/// with the run before it. A cut may part the uses of the parameters `parted`. Throws Error{Data}
/// with the node's place if an operator is unknown.
std::vector<GraphRun> graph_runs(const GraphFile& file, int depth,
                                 const std::set<std::string>& parted = {});

}  // namespace pipewright
