// SPDX-License-Identifier: Apache-2.0
/// The made-up machines on which the schedules of a replay are simulated. All seconds and bytes are
/// such that every sum and quotient of a simulation is a binary number of few digits, so that a
/// time is the same in whatever order it is added up.
#pragma once

#include <vector>

#include "core/cost/cost.h"
#include "core/simulation/hardware.h"

namespace pipewright::replay {

struct Machine {
  Hardware hardware;
  std::vector<StageCost> costs;  ///< one per stage
  bool counts_memory = false;
};

/// For each shape the same: equal stages on ideal hardware; uneven stages on uneven devices with
/// links of some latency; and the same stages with a bus, one copy engine and sends that block.
std::vector<Machine> machines(const PipelineShape& shape);

}  // namespace pipewright::replay
