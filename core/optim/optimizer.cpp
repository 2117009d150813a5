// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/nn/memory_format.h"
#include "core/optim/optimizer_groups.h"
#include "core/tensors/torch.h"

namespace pipewright {

at::Tensor FlatLayout::Entry::view(const at::Tensor& flat) const {
  return reshaped(flat.narrow(0, offset, size), shape, channels_last);
}

at::Tensor FlatLayout::Entry::in_order(const at::Tensor& tensor) const {
  return flattened(laid_out(tensor, channels_last));
}

Optimizer::Optimizer(Options& options, double default_lr)
    : lr_(options.number("lr", default_lr, "Learning rate; lr_schedule changes it over time.",
                         kNotNegative)) {}

double Prediction::distance() const {
  return rates.empty() ? lr * steps : std::accumulate(rates.begin(), rates.end(), 0.0);
}

void predict(const Optimizer& optimizer, const Prediction& prediction) {
  const std::int64_t all = prediction.weights.numel();
  if (!prediction.made) return optimizer.predict(prediction, {0, all});
  if (!prediction.state.parts.empty()) return predict_parts(prediction);
  constexpr std::int64_t kGrain = 1 << 15, kBlock = 1 << 12;
  at::parallel_for(0, all, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kBlock) {
      const std::int64_t stop = std::min(i + kBlock, end);
      optimizer.predict(prediction, {i, stop});
      prediction.made(i, stop);
    }
  });
}

void step_and_predict(const Optimizer& optimizer, OptimizerStep step,
                      const Prediction& prediction) {
  if (!step.weights.is_cpu()) {  // one kernel for all parameters is cheaper than one each
    optimizer.step(step);
    predict(optimizer, prediction);
    return;
  }
  if (!step.state.parts.empty()) return step_and_predict_parts(step, prediction);
  step.made = [&, of_weights = step.made](std::int64_t begin, std::int64_t end) {
    if (of_weights) of_weights(begin, end);
    optimizer.predict(prediction, {begin, end});
    if (prediction.made) prediction.made(begin, end);
  };
  optimizer.step(step);
}

std::int64_t numbers_in_tables(const Optimizer& optimizer, const FlatLayout& layout,
                               bool predicts) {
  std::int64_t count = 0;
  for (const StateTable& table : optimizer.tables(predicts))
    for (const FlatLayout::Entry& entry : layout.entries)
      if (const auto shape = table.shape_for(entry))
        count +=
            std::accumulate(shape->begin(), shape->end(), std::int64_t{1}, std::multiplies<>());
  return count;
}

OptimizerState fresh_state(const Optimizer& optimizer, const FlatLayout& layout,
                           const at::TensorOptions& options, bool predicts, bool keep_gradient) {
  OptimizerState state;
  for (std::size_t i = 0; i < optimizer.slot_names(predicts).size(); ++i)
    state.slots.push_back(at::zeros({layout.size}, options));
  for (const StateTable& table : optimizer.tables(predicts)) {
    std::vector<at::Tensor>& tensors = state.tables.emplace_back();
    for (const FlatLayout::Entry& entry : layout.entries) {
      const auto shape = table.shape_for(entry);
      tensors.push_back(shape ? laid_out(at::zeros(*shape, options), entry.channels_last)
                              : at::Tensor());
    }
  }
  if (keep_gradient) state.last_gradient = at::zeros({layout.size}, options);
  if (!optimizer.groups().empty()) state.parts = parts_of(optimizer, layout, state, predicts);
  return state;
}

}  // namespace pipewright
