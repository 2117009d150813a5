// SPDX-License-Identifier: Apache-2.0
/// Counts what one layer costs from shapes alone, on the meta device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"
#include "core/nn/layer.h"

namespace pipewright {

/// Bytes of the tensors at a boundary between layers.
std::int64_t boundary_bytes(const Tensors& tensors);

/// How many tensors at the end of what a layer passes on are lent weights.
inline int lent_behind(const Layer& layer) {
  const SkipUse use = layer.skips();
  return (use.borrows ? use.looks : 0) + static_cast<int>(use.lends.size());
}

/// Weights that layers lend to later ones (sharing() in core/nn/layers.h), put aside in between:
/// they are no part of what crosses a boundary with each micro-batch. An Element is a tensor, or
/// what is known of one.
template <class Element>
class LentStack {
 public:
  template <class Elements>
  void give(const Layer& to, Elements& inputs) {
    const SkipUse use = to.skips();
    if (use.borrows) move_last(lent_, inputs, use.takes + use.looks);
  }
  template <class Elements>
  void take(const Layer& from, Elements& outputs) {
    move_last(outputs, lent_, lent_behind(from));
  }

 private:
  template <class From, class To>
  static void move_last(From& from, To& to, int count) {
    const auto first = from.end() - count;
    to.insert(to.end(), first, from.end());
    from.erase(first, from.end());
  }

  std::vector<Element> lent_;
};
using LentTensors = LentStack<at::Tensor>;

/// Operations and bytes of a layer on inputs `x` of the meta device, which are replaced by its
/// outputs. Times, and the memory of passes, are left at 0. No graph must be recorded.
LayerCost count_layer(const Layer& layer, Tensors& x, const Experiment& experiment);

}  // namespace pipewright
