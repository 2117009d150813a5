// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/boundaries.h"

#include "core/measuring/made_up_batch.h"
#include "core/tensors/torch.h"

namespace pipewright {
std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs) {
  const at::NoGradGuard no_grad;
  const Precision& precision = experiment.train.precision;
  std::vector<Tensors> all;
  const auto stages = experiment.stage_layers();
  for (std::size_t stage = 0; stage + 1 < stages.size(); ++stage) {
    for (const LayerPtr& next : stages[stage]) {
      const auto parameters = empty_parameters(*next, precision, at::kMeta);
      auto buffers = empty_buffers(*next, precision, at::kMeta);
      inputs = next->forward_all(inputs, parameters, buffers, {});
    }
    all.push_back(inputs);
  }
  return all;
}

}  // namespace pipewright
