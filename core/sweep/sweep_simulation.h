// SPDX-License-Identifier: Apache-2.0
/// Simulates every point of a sweep, in threads. Nothing is trained and no data is opened.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "core/config/value.h"
#include "core/measuring/cost_source.h"
#include "core/planning/simulated_sweep.h"

namespace pipewright {

struct SweepSimulationSettings {
  std::filesystem::path hardware;  ///< a description in the place of hardware.file; empty: none
  CostFiles costs;
  int minibatches = 0;  ///< of each simulation; 0: as many as show a steady pace
  int jobs = 1;         ///< threads
  std::function<void(std::size_t done)> progress;  ///< called by one thread at a time; may be empty
};

/// The points of the document's sweep, none of them simulated yet. Throws Error{Experiment} if the
/// sweep cannot be read or there is none.
SimulatedSweep unsimulated_sweep(const Value& document);

/// Simulates each point as `simulate` simulates one. What cannot be simulated is a refused point
/// with its reason and ends nothing. The result does not depend on `jobs`. Points that differ only
/// in their hardware share their experiment, schedule and proof. Throws Error{Experiment} if the
/// sweep cannot be read or there is none, or a file of costs is wrong.
SimulatedSweep simulate_sweep(const Value& document, const SweepSimulationSettings& settings);

}  // namespace pipewright
