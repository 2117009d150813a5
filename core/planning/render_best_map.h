// SPDX-License-Identifier: Apache-2.0
/// A map of the best candidates: two axes, a colour and a name for each.
#pragma once

#include <string>

#include "core/planning/best_points.h"
#include "core/planning/simulated_sweep.h"

namespace pipewright {

/// A stand-alone SVG. Each cell has the best candidate's colour and its name (in narrow cells the
/// letter that the legend gives it), what it has chosen and its pace; candidates within kNear are
/// named, and the next best of them has a stripe of its colour. Each combination of conditions is a
/// map of its own. A cell says so where nothing fits or all is refused.
std::string render_best_map(const SimulatedSweep& sweep, const BestPoints& best,
                            const std::string& title);

}  // namespace pipewright
