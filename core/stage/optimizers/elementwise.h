/// Runs an optimizer's elementwise rule over flat tensors. The rule is a template over its value
/// type, written once: scalars in a fused loop on the CPU, whole tensors on any other device.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/stage/optimizer.h"
#include "core/stage/torch.h"

namespace pipewright::elementwise {

/// Elements one thread takes at a time; below it a loop stays on the calling thread.
inline constexpr std::int64_t kGrain = 1 << 15;
/// Elements of a block: what a step has just written is still in the cache when predictions read it.
inline constexpr std::int64_t kBlock = 1 << 12;

inline float root(float x) { return std::sqrt(x); }
inline double root(double x) { return std::sqrt(x); }
inline at::Tensor root(const at::Tensor& x) { return x.sqrt(); }

/// Elements [begin, end) of one parameter, counted within it.
template <std::size_t Slots, class T, class Rule>
void step_block(const OptimizerStep& step, const T* gradient, std::int64_t offset, const Rule& rule,
                std::int64_t begin, std::int64_t end) {
  const T* const weights = step.weights.const_data_ptr<T>() + offset;
  T* const next = step.next.mutable_data_ptr<T>() + offset;
  T* const kept = step.state.last_gradient.defined()
                      ? step.state.last_gradient.mutable_data_ptr<T>() + offset
                      : nullptr;
  std::array<T*, Slots> slots{};
  for (std::size_t s = 0; s < Slots; ++s)
    slots[s] = step.state.slots[s].template mutable_data_ptr<T>() + offset;
  const Rule local = rule;  // its constants stay in registers: no store below can change them
  for (std::int64_t i = begin; i < end; ++i) {
    std::array<T, Slots> values;
    for (std::size_t s = 0; s < Slots; ++s) values[s] = slots[s][i];
    T gradient_used = gradient[i];
    next[i] = local(weights[i], gradient_used, values);
    for (std::size_t s = 0; s < Slots; ++s) slots[s][i] = values[s];
    if (kept != nullptr) kept[i] = gradient_used;
  }
}

template <std::size_t Slots, class T, class Rule>
void step_loop(const Optimizer& optimizer, const OptimizerStep& step, const at::Tensor& gradient,
               const FlatLayout::Entry& entry, const Rule& rule) {
  const T* const g = gradient.const_data_ptr<T>();
  at::parallel_for(0, entry.size, kGrain, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t block = step.predictions.empty() ? last - first : kBlock;
    for (std::int64_t begin = first; begin < last; begin += block) {
      const std::int64_t end = std::min(last, begin + block);
      step_block<Slots, T>(step, g, entry.offset, rule, begin, end);
      for (const Prediction& prediction : step.predictions)
        optimizer.predict(prediction, entry.offset + begin, entry.offset + end);
    }
  });
}

template <std::size_t Slots, class Rule>
void step_tensors(const OptimizerStep& step, const at::Tensor& gradient,
                  const FlatLayout::Entry& entry, const Rule& rule) {
  auto part = [&](const at::Tensor& flat) { return flat.narrow(0, entry.offset, entry.size); };
  std::array<at::Tensor, Slots> values;
  for (std::size_t s = 0; s < Slots; ++s) values[s] = part(step.state.slots[s]).clone();
  at::Tensor gradient_used = gradient.reshape({-1});
  const at::Tensor next = rule(part(step.weights), gradient_used, values);
  part(step.next).copy_(next);
  for (std::size_t s = 0; s < Slots; ++s) part(step.state.slots[s]).copy_(values[s]);
  if (step.state.last_gradient.defined()) part(step.state.last_gradient).copy_(gradient_used);
}

/// rule(w, g&, slots&) → next w, and overwrites the slots; it may add weight decay into g. It should
/// hold its constants by value.
template <std::size_t Slots, class Rule>
void step(const Optimizer& optimizer, const OptimizerStep& step, const Rule& rule) {
  for (std::size_t p = 0; p < step.layout.entries.size(); ++p) {
    const FlatLayout::Entry& entry = step.layout.entries[p];
    const at::Tensor gradient = step.gradients[p].defined() ? step.gradients[p].contiguous() : at::Tensor();
    if (gradient.defined() && gradient.is_cpu()) {
      if (gradient.scalar_type() == at::kFloat)
        step_loop<Slots, float>(optimizer, step, gradient, entry, rule);
      else
        step_loop<Slots, double>(optimizer, step, gradient, entry, rule);
      continue;
    }
    if (gradient.defined())
      step_tensors<Slots>(step, gradient, entry, rule);
    else if (!step.next.is_same(step.weights))
      step.next.narrow(0, entry.offset, entry.size).copy_(step.weights.narrow(0, entry.offset, entry.size));
    for (const Prediction& prediction : step.predictions)
      optimizer.predict(prediction, entry.offset, entry.offset + entry.size);
  }
}

template <std::size_t Inputs, class T, class Rule>
void predict_loop(const Prediction& p, const std::array<at::Tensor, Inputs>& inputs, const Rule& rule,
                  std::int64_t first, std::int64_t last) {
  const T* const weights = p.weights.const_data_ptr<T>();
  T* const ahead = p.ahead.mutable_data_ptr<T>();
  std::array<const T*, Inputs> data{};
  for (std::size_t s = 0; s < Inputs; ++s) data[s] = inputs[s].template const_data_ptr<T>();
  at::parallel_for(first, last, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const Rule local = rule;
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<T, Inputs> values;
      for (std::size_t s = 0; s < Inputs; ++s) values[s] = data[s][i];
      ahead[i] = local(weights[i], values);
    }
  });
}

/// rule(w, inputs) → predicted w, for the elements [begin, end).
template <std::size_t Inputs, class Rule>
void predict(const Prediction& p, const std::array<at::Tensor, Inputs>& inputs, const Rule& rule,
             std::int64_t begin, std::int64_t end) {
  if (!p.weights.is_cpu()) {
    auto part = [&](const at::Tensor& flat) { return flat.narrow(0, begin, end - begin); };
    std::array<at::Tensor, Inputs> parts;
    for (std::size_t s = 0; s < Inputs; ++s) parts[s] = part(inputs[s]);
    part(p.ahead).copy_(rule(part(p.weights), parts));
  } else if (p.weights.scalar_type() == at::kFloat) {
    predict_loop<Inputs, float>(p, inputs, rule, begin, end);
  } else {
    predict_loop<Inputs, double>(p, inputs, rule, begin, end);
  }
}

/// A scalar factor as the rule's value type wants it: T on the CPU, double beside tensors.
template <class V>
auto factor(double x) {
  if constexpr (std::is_same_v<V, float>)
    return static_cast<float>(x);
  else
    return x;
}

}  // namespace pipewright::elementwise
