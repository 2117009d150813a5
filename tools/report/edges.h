// SPDX-License-Identifier: Apache-2.0
/// Edges of stability of a report's runs: which product of learning rate and curvature each stage
/// tolerates.
#pragma once

#include "core/page/page_content.h"

namespace pipewright {

/// Adds charts of the edges, one for each number of stages, the edges of each run's stages, and
/// notes on what the charts do not show. Runs without edges, such as those of optimizers that are
/// no linear recurrence, get none.
void add_edges(Report& report);

}  // namespace pipewright
