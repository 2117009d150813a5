// SPDX-License-Identifier: Apache-2.0
/// The layers of a graph: runs of consecutive nodes with one module path, between which a pipeline
/// may be cut.
#pragma once

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

/// Divides the nodes where the first `depth` parts of the module path change. Places are left out
/// where a cut would change the result: where a tensor that exists is written in place behind it,
/// by any of its views; where both sides read one parameter or one batch norm's statistics; and
/// where what crosses does not have the batch as its dimension 0. A node of an outer module goes
/// with the run before it. A cut may part the uses of the parameter `lent`; "": of none. Throws
/// Error{Data} with the node's place if an operator is unknown.
std::vector<GraphRun> graph_runs(const GraphFile& file, int depth, const std::string& lent = {});

/// A parameter that several modules use, with the nodes that use it first and last.
struct SharedParameter {
  std::string name;
  std::size_t first = 0, last = 0;
  std::size_t modules = 0;
  std::size_t width() const { return last - first; }
};
/// Those of the file; first the one between whose uses most nodes lie.
std::vector<SharedParameter> shared_parameters(const GraphFile& file, int depth);

/// Why there are not more layers: parameters whose uses keep nodes together, or the depth. `ties`:
/// the uses of the first of shared_parameters() may be parted, if two modules use it.
std::string why_so_few(const GraphFile& file, int depth, bool ties);

}  // namespace pipewright
