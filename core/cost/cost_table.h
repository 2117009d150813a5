/// Costs of stages written down by hand, for simulations that need no profile.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/value.h"
#include "core/cost/cost.h"

namespace pipewright {

struct CostTable {
  std::int64_t samples = 1;  ///< of one micro-batch
  std::vector<StageCost> stages;
};

/// Every stage alike; a backward takes twice a forward, of which each half of it takes one half.
std::vector<StageCost> equal_costs(int stages, double forward = 1);

/// Reads a mapping whose keys are StageCost's names; seconds and bytes of one micro-batch. Each is
/// a number for all stages or a list with one per stage. Without them `backward` is twice
/// `forward`, `backward_input` and `backward_weight` half of `backward`, `output_bytes` what the
/// next stage's `input_bytes` say, the others 0. What is wrong goes to `problems`.
CostTable read_cost_table(const Value& document, int stages, Problems& problems);

}  // namespace pipewright
