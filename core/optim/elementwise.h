// SPDX-License-Identifier: Apache-2.0
/// Runs an optimizer's elementwise rule over flat tensors. The rule is a template over its value
/// type, written once: scalars in a fused loop on the CPU, whole tensors on any other device.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/base/vectorised.h"
#include "core/optim/weight_decay.h"
#include "core/tensors/torch.h"

namespace pipewright::elementwise {

/// Elements that one thread takes at a time; shorter loops run on the calling thread.
inline constexpr std::int64_t kGrain = 1 << 15;

/// Elements that a step on another device takes at a time, if no parameter has more: they bound the
/// memory of its intermediate tensors.
inline constexpr std::int64_t kRun = 1 << 24;

/// Block length, in elements of type T, for a step over `Arrays` arrays that is followed by a
/// prediction of the same block: the block is then still in a first-level cache of 32 KB.
template <std::size_t Arrays, class T>
inline constexpr std::int64_t kBlock = (32 << 10) / (Arrays * sizeof(T)) / 16 * 16;

inline float root(float x) {
  return std::sqrt(x);
}
inline double root(double x) {
  return std::sqrt(x);
}
inline at::Tensor root(const at::Tensor& x) {
  return x.sqrt();
}

/// The sign of zero is zero, and that of NaN is NaN, so that a training that has diverged shows it.
inline float sign_of(float x) {
  return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
}
inline double sign_of(double x) {
  return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}
/// sign() of NaN is 0; divided by 0 it is NaN again. where() takes no tensors without memory.
inline at::Tensor sign_of(const at::Tensor& x) {
  return x.sign() / x.eq(x);
}

/// Steps one parameter of numbers T with a gradient of numbers G on the CPU. `next` may be
/// `weights`: element i depends on element i only, which ivdep tells the compiler.
template <std::size_t Slots, bool Keep, class T, class G, class Rule>
void step_loop(const OptimizerStep& step, const at::Tensor& gradient,
               const FlatLayout::Entry& entry, const Rule& rule) {
  const T* const weights = step.weights.const_data_ptr<T>() + entry.offset;
  const G* const g = gradient.const_data_ptr<G>();
  T* const next = step.next.mutable_data_ptr<T>() + entry.offset;
  T* const kept = Keep ? step.state.last_gradient.mutable_data_ptr<T>() + entry.offset : nullptr;
  std::array<T*, Slots> slots{};
  for (std::size_t s = 0; s < Slots; ++s)
    slots[s] = step.state.slots[s].template mutable_data_ptr<T>() + entry.offset;
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const Rule local = rule;  // a local copy stays in registers: no store below can alias it
    PIPEWRIGHT_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<T, Slots> values;
      for (std::size_t s = 0; s < Slots; ++s) values[s] = slots[s][i];
      T gradient_used = static_cast<T>(g[i]);
      next[i] = local(weights[i], gradient_used, values);
      for (std::size_t s = 0; s < Slots; ++s) slots[s][i] = values[s];
      if constexpr (Keep) kept[i] = gradient_used;
    }
  };
  at::parallel_for(0, entry.size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (!step.made) return part(begin, end);
    constexpr std::int64_t kLength = kBlock<3 + Slots + Keep, T>;  // weights, gradient, prediction
    for (std::int64_t i = begin; i < end; i += kLength) {
      const std::int64_t stop = std::min(i + kLength, end);
      part(i, stop);
      step.made(entry.offset + i, entry.offset + stop);
    }
  });
}

template <std::size_t Slots, class T, class G, class Rule>
void step_loop(const OptimizerStep& step, const at::Tensor& gradient,
               const FlatLayout::Entry& entry, const Rule& rule) {
  if (step.state.last_gradient.defined())
    step_loop<Slots, true, T, G>(step, gradient, entry, rule);
  else
    step_loop<Slots, false, T, G>(step, gradient, entry, rule);
}

/// The gradient of a parameter as it lies in the flat weights, [size], not scaled; it may have
/// fewer bits than the weights. Undefined: there is none, and the parameter has been left as it is.
inline at::Tensor gradient_of(const OptimizerStep& step, std::size_t parameter) {
  const FlatLayout::Entry& entry = step.layout.entries[parameter];
  if (!step.gradients[parameter].defined()) {
    if (!step.next.is_same(step.weights))
      step.next.narrow(0, entry.offset, entry.size)
          .copy_(step.weights.narrow(0, entry.offset, entry.size));
    if (step.made) step.made(entry.offset, entry.offset + entry.size);
    return {};
  }
  const at::Tensor gradient = entry.in_order(step.gradients[parameter]);
  if (gradient.scalar_type() != at::kHalf) return gradient;
  return gradient.to(step.weights.scalar_type()).div_(step.loss_scale);
}

/// Steps the weights of `range` with their gradient, [size], which may have fewer bits.
template <std::size_t Slots, class Rule>
void step_tensors(const OptimizerStep& step, const at::Tensor& gradient, const FlatRange& range,
                  const Rule& rule) {
  auto part = [&](const at::Tensor& flat) {
    return flat.narrow(0, range.begin, range.end - range.begin);
  };
  std::array<at::Tensor, Slots> values;
  for (std::size_t s = 0; s < Slots; ++s) values[s] = part(step.state.slots[s]).clone();
  at::Tensor gradient_used = gradient.to(step.weights.scalar_type());
  const at::Tensor next = rule(part(step.weights), gradient_used, values);
  part(step.next).copy_(next);
  for (std::size_t s = 0; s < Slots; ++s) part(step.state.slots[s]).copy_(values[s]);
  if (step.state.last_gradient.defined()) part(step.state.last_gradient).copy_(gradient_used);
  if (step.made) step.made(range.begin, range.end);
}

/// The gradients of a run of parameters, in order, as they lie in the flat weights.
inline at::Tensor joined(const OptimizerStep& step, std::size_t first,
                         const std::vector<at::Tensor>& gradients, const FlatRange& range) {
  if (gradients.size() == 1) return gradients[0];
  const at::Tensor flat = at::empty({range.end - range.begin}, step.weights.options());
  // The operator copies all at once if their number formats are the same.
  std::map<at::ScalarType, std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> copies;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const FlatLayout::Entry& entry = step.layout.entries[first + i];
    auto& [to, from] = copies[gradients[i].scalar_type()];
    to.push_back(flat.narrow(0, entry.offset - range.begin, entry.size));
    from.push_back(gradients[i]);
  }
  for (const auto& [type, both] : copies) at::_foreach_copy_(both.first, both.second);
  return flat;
}

/// Steps all parameters on another device than the CPU, at a time as many as have one decay, kRun
/// elements and no gap between them: a device's queue is filled kernel by kernel, and many
/// parameters are small.
template <std::size_t Slots, class RuleFor>
void step_runs(const OptimizerStep& step, const WeightDecay& decay, const RuleFor& rule_for) {
  const auto& entries = step.layout.entries;
  for (std::size_t first = 0, next = 0; first < entries.size(); first = next) {
    const double lambda = decay.of(entries[first]);
    FlatRange range{entries[first].offset, entries[first].offset};
    std::vector<at::Tensor> gradients;
    for (next = first; next < entries.size(); ++next) {
      const std::int64_t end = entries[next].offset + entries[next].size;
      const bool joins = decay.of(entries[next]) == lambda && entries[next].offset == range.end &&
                         end - range.begin <= kRun;
      if (next > first && !joins) break;
      const at::Tensor gradient = gradient_of(step, next);
      if (!gradient.defined()) {
        ++next;
        break;
      }
      gradients.push_back(gradient);
      range.end = end;
    }
    if (!gradients.empty())
      step_tensors<Slots>(step, joined(step, first, gradients, range), range, rule_for(lambda));
  }
}

/// Steps all parameters. rule_for(λ), with the parameter's decay, makes a rule: rule(w, g&, slots&)
/// returns the next w and overwrites the slots; it may add weight decay to g. It should hold its
/// constants by value.
template <std::size_t Slots, class RuleFor>
void step(const OptimizerStep& step, const WeightDecay& decay, const RuleFor& rule_for) {
  if (!step.weights.is_cpu()) return step_runs<Slots>(step, decay, rule_for);
  for (std::size_t p = 0; p < step.layout.entries.size(); ++p) {
    const FlatLayout::Entry& entry = step.layout.entries[p];
    const at::Tensor gradient = gradient_of(step, p);
    if (!gradient.defined()) continue;
    const auto rule = rule_for(decay.of(entry));
    if (gradient.scalar_type() == at::kBFloat16)
      step_loop<Slots, float, at::BFloat16>(step, gradient, entry, rule);
    else if (gradient.scalar_type() == at::kFloat)
      step_loop<Slots, float, float>(step, gradient, entry, rule);
    else
      step_loop<Slots, double, double>(step, gradient, entry, rule);
  }
}

template <std::size_t Inputs, class T, class Rule>
void predict_loop(const Prediction& p, const FlatRange& range,
                  const std::array<const at::Tensor*, Inputs>& inputs, const Rule& rule) {
  const T* const weights = p.weights.const_data_ptr<T>();
  T* const ahead = p.ahead.mutable_data_ptr<T>();
  std::array<const T*, Inputs> data{};
  for (std::size_t s = 0; s < Inputs; ++s) data[s] = inputs[s]->template const_data_ptr<T>();
  at::parallel_for(range.begin, range.end, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const Rule local = rule;
    PIPEWRIGHT_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<T, Inputs> values;
      for (std::size_t s = 0; s < Inputs; ++s) values[s] = data[s][i];
      ahead[i] = local(weights[i], values);
    }
  });
}

template <std::size_t Inputs, class Rule>
void predict_tensors(const Prediction& p, const FlatRange& range,
                     const std::array<const at::Tensor*, Inputs>& inputs, const Rule& rule) {
  auto part = [&](const at::Tensor& flat) {
    return flat.narrow(0, range.begin, range.end - range.begin);
  };
  std::array<at::Tensor, Inputs> values;
  for (std::size_t s = 0; s < Inputs; ++s) values[s] = part(*inputs[s]);
  part(p.ahead).copy_(rule(part(p.weights), values));
}

/// Predicts the elements of `range`: rule(w, inputs) returns the predicted w.
template <std::size_t Inputs, class Rule>
void predict(const Prediction& p, const FlatRange& range,
             const std::array<const at::Tensor*, Inputs>& inputs, const Rule& rule) {
  if (!p.weights.is_cpu())
    predict_tensors<Inputs>(p, range, inputs, rule);
  else if (p.weights.scalar_type() == at::kFloat)
    predict_loop<Inputs, float>(p, range, inputs, rule);
  else
    predict_loop<Inputs, double>(p, range, inputs, rule);
}

/// Converts a scalar factor to the type that the rule's arithmetic needs: V if V is a scalar,
/// double if V is a tensor.
template <class V>
auto factor(double x) {
  if constexpr (std::is_same_v<V, float>)
    return static_cast<float>(x);
  else
    return x;
}

}  // namespace pipewright::elementwise
