// SPDX-License-Identifier: Apache-2.0
/// A simulated sweep as text for a terminal, as CSV, as a value for programs, and as a picture.
#pragma once

#include <string>

#include "core/config/value.h"
#include "core/planning/best_points.h"
#include "core/planning/simulated_sweep.h"

namespace pipewright {

/// Counts, the best candidate of each combination as a map and as a table, the points if they are
/// few, and what is refused or does not fit, each reason once. Long tables are cut.
std::string sweep_text(const SimulatedSweep& sweep, const BestPoints& best);

/// One line per point with all its figures, in seconds and bytes; the last columns say whether it
/// is the best of its combination, and why it does not fit or is refused.
std::string sweep_csv(const SimulatedSweep& sweep, const BestPoints& best);

/// All of it, in seconds and bytes.
Value sweep_value(const SimulatedSweep& sweep, const BestPoints& best);

/// A stand-alone SVG. Each cell has the best candidate's colour and its name (in narrow cells the
/// letter that the legend gives it), what it has chosen and its pace; candidates within kNear are
/// named, and the next best of them has a stripe of its colour. Each combination of conditions is a
/// map of its own. A cell says so where nothing fits or all is refused.
std::string render_best_map(const SimulatedSweep& sweep, const BestPoints& best,
                            const std::string& title);

}  // namespace pipewright
