// SPDX-License-Identifier: Apache-2.0
/// Runs an optimizer's rule parameter by parameter, for rules that see a matrix as a matrix. It is
/// the same code on every device: operations on whole tensors.
#pragma once

#include "core/nn/memory_format.h"
#include "core/optim/elementwise.h"

namespace pipewright {

/// A parameter's part of an update. Tensors have the parameter's shape, in any memory order.
struct ParameterStep {
  std::size_t index = 0;  ///< in the layout
  const FlatLayout::Entry& entry;
  at::Tensor weights;   ///< the version before
  at::Tensor gradient;  ///< in the number format of the weights
};

/// Calls rule(one) for every parameter that has a gradient; it returns the next weights.
template <class Rule>
void step_by_parameter(const OptimizerStep& s, const Rule& rule) {
  for (std::size_t p = 0; p < s.layout.entries.size(); ++p) {
    const FlatLayout::Entry& entry = s.layout.entries[p];
    const at::Tensor flat = elementwise::gradient_of(s, p);
    if (!flat.defined()) continue;
    const ParameterStep one{
        .index = p,
        .entry = entry,
        .weights = entry.view(s.weights),
        .gradient = reshaped(flat.to(s.weights.scalar_type()), entry.shape, entry.channels_last)};
    entry.view(s.next).copy_(rule(one));
    if (s.state.last_gradient.defined()) entry.view(s.state.last_gradient).copy_(one.gradient);
    if (s.made) s.made(entry.offset, entry.offset + entry.size);
  }
}

/// Predicts along the last step, which is flat: Ŵ = W − s·lr·last; with a rule that has it, weights
/// decay, too, but not before the first step.
inline void predict_along(const Prediction& p, const FlatRange& range, const at::Tensor& last_step,
                          double weight_decay) {
  const double distance = p.distance();
  const double decay = p.rule.weight_decay && p.state.steps > 0 ? distance * weight_decay : 0;
  elementwise::predict<1>(
      p, range, {&last_step}, [=]<class V>(const V& w, const std::array<V, 1>& last) -> V {
        return w - elementwise::factor<V>(decay) * w - elementwise::factor<V>(distance) * last[0];
      });
}

/// A parameter of several dimensions as the matrix [first, all others]: a convolution's weight is
/// [out, in × height × width], whatever its memory order. A copy where it is no view.
inline at::Tensor as_matrix(const at::Tensor& parameter) {
  return parameter.reshape({parameter.size(0), -1});
}

}  // namespace pipewright
