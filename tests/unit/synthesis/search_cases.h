// SPDX-License-Identifier: Apache-2.0
/// Tasks that the tests of the search share.
#pragma once

#include <vector>

#include "core/base/as_size.h"
#include "core/base/random.h"
#include "core/cost/cost_table.h"
#include "core/simulation/hardware.h"
#include "core/synthesis/order_task.h"

namespace pipewright {

/// The shape of a pipeline with a worker for each stage.
inline PipelineShape straight(int stages, int microbatches, int minibatches = 1) {
  return {.stages = stages, .microbatches = microbatches, .minibatches = minibatches};
}

/// Equal stages whose passes take these seconds; a whole backward takes as long as its halves.
inline std::vector<StageCost> alike(int stages, double forward, double input, double weight) {
  std::vector<StageCost> costs = equal_costs(stages, forward);
  for (StageCost& cost : costs) {
    cost.backward = input + weight;
    cost.backward_input = input;
    cost.backward_weight = weight;
  }
  return costs;
}

/// Such a pipeline with split backwards, in which a worker may hold `live` micro-batches.
inline OrderTask equal_task(int stages, int microbatches, double live, double forward = 1,
                            double input = 1, double weight = 1) {
  OrderTask task = order_task(straight(stages, microbatches), alike(stages, forward, input, weight),
                              ideal_hardware(stages), true);
  for (double& room : task.room) room = live;
  return task;
}

/// Stages that take from 0.5 to 2 s for each pass, and updates of up to 0.5 s. In half of the
/// tables a whole backward takes less than its halves.
inline std::vector<StageCost> random_costs(int stages, std::uint64_t seed) {
  const RandomStream random(seed, "cost table");
  std::vector<StageCost> costs = equal_costs(stages);
  std::uint64_t drawn = 0;
  auto seconds = [&] { return 0.5 + 1.5 * random.uniform(drawn++); };
  for (StageCost& cost : costs) {
    cost.forward = seconds();
    cost.backward_input = seconds();
    cost.backward_weight = seconds();
    cost.backward = (cost.backward_input + cost.backward_weight) * (seed % 2 == 0 ? 1 : 0.9);
    cost.update = 0.5 * random.uniform(drawn++);
  }
  return costs;
}

}  // namespace pipewright
