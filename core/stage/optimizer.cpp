// SPDX-License-Identifier: Apache-2.0
#include "core/stage/optimizer.h"

#include "core/stage/torch.h"

namespace pipewright {

Optimizer::Optimizer(Options& options, double default_lr)
    : lr_(options.number("lr", default_lr, "Learning rate; lr_schedule changes it over time.",
                         kNotNegative)) {}

void predict(const Optimizer& optimizer, const Prediction& prediction) {
  optimizer.predict(prediction, {0, prediction.weights.numel()});
}

void step_and_predict(const Optimizer& optimizer, OptimizerStep step,
                      const Prediction& prediction) {
  if (!step.weights.is_cpu()) {  // one kernel for all parameters is cheaper than one each
    optimizer.step(step);
    predict(optimizer, prediction);
    return;
  }
  step.made = [&](std::int64_t begin, std::int64_t end) {
    optimizer.predict(prediction, {begin, end});
  };
  optimizer.step(step);
}

OptimizerState fresh_state(const Optimizer& optimizer, const FlatLayout& layout,
                           const at::TensorOptions& options, bool predicts, bool keep_gradient) {
  OptimizerState state;
  for (std::size_t i = 0; i < optimizer.slot_names(predicts).size(); ++i)
    state.slots.push_back(at::zeros({layout.size}, options));
  if (keep_gradient) state.last_gradient = at::zeros({layout.size}, options);
  return state;
}

}  // namespace pipewright
