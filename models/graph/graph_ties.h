// SPDX-License-Identifier: Apache-2.0
/// The layers of a graph in which several modules use one parameter.
#pragma once

#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "models/graph/graph_cut.h"

namespace pipewright {

struct TiedRuns {
  std::vector<GraphRun> runs;
  std::vector<Sharing> shares;    ///< of each run's layer
  std::vector<std::string> kept;  ///< parameters between whose uses there is no cut
};

/// Divides the graph so that cuts part the uses of parameters as `tie` says. Copies are called
/// "<name>#2", "<name>#3" and so on. Tie::Same parts the uses of those that nest like brackets,
/// because what is lent is a stack; of others, of those between whose uses most nodes lie.
TiedRuns tied_runs(const GraphFile& file, int depth, Tie tie);

/// Why there are not more layers: parameters whose uses keep nodes together, or the depth.
std::string why_so_few(const GraphFile& file, int depth, Tie tie);

}  // namespace pipewright
