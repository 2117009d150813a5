// SPDX-License-Identifier: Apache-2.0
/// The smallest edge of stability of every point of a sweep. Nothing is trained and no data is
/// opened.
#pragma once

#include <cstddef>
#include <functional>

#include "core/config/value.h"
#include "core/stability/swept_edges.h"

namespace pipewright {

struct SweepStabilitySettings {
  double discrepancy = 0;                          ///< LoopOptions::discrepancy
  std::function<void(std::size_t done)> progress;  ///< may be empty
};

/// Points that differ only in their seed are one row. A point without an edge says why, and ends
/// nothing. Throws Error{Experiment} if the sweep cannot be read or there is none.
SweptEdges sweep_stability(const Value& document, const SweepStabilitySettings& settings);

}  // namespace pipewright
