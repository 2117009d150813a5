// SPDX-License-Identifier: Apache-2.0
/// Stage costs written by hand, for simulations that need no profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/cost/cost.h"

namespace pipewright {

struct CostTable {
  std::int64_t samples = 0;  ///< in one micro-batch; 0: as many as the experiment's
  std::vector<StageCost> stages;
};

/// The same costs for every stage: a backward takes twice as long as a forward, and each half of it
/// as long as a forward.
std::vector<StageCost> equal_costs(int stages, double forward = 1);

/// The keys of such a table, `forward` first.
std::vector<std::string> cost_table_keys();

/// Reads a mapping from the names of StageCost's members to seconds or bytes of one micro-batch;
/// each is a number for all stages or a list with one per stage. By default `backward` is twice
/// `forward`, `backward_input` and `backward_weight` are half of `backward`, `output_bytes` is the
/// `input_bytes` of the next stage or, where only it is given, the other way round, no
/// `fused_prediction` and no `fused_pair` is there, and the others are 0. Faults are recorded in
/// `problems`.
CostTable read_cost_table(const Value& document, int stages, Problems& problems);

}  // namespace pipewright
