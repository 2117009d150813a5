// SPDX-License-Identifier: Apache-2.0
/// Tensors that the slices of a micro-batch leave for each other on one stage: keys and values of
/// its attention layers in the forwards, and their gradients in the backwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/nn/layer.h"

namespace pipewright {

/// The tensors of one micro-batch, used by the thread of its stage. Forwards go from the first
/// slice to the last, backwards from the last to the first (core/schedule/slices.h). The graphs of
/// the slices are not connected: each takes those before it as constants, and its gradients to them
/// are added where their own backwards begin. So a graph may be freed or made anew slice by slice.
class EarlierSlices {
 public:
  /// Takes a tensor [n, heads, tokens of a slice, d] of the pass's slice, and returns it behind
  /// those of the slices before: [n, heads, tokens so far, d]. `name` tells the tensors of a stage
  /// apart. All share one memory, which the first slice allocates for the whole sequence. A
  /// backward through the result adds what later slices have left to the gradient of `own`.
  at::Tensor continued(const std::string& name, const at::Tensor& own, const Pass& pass);

  struct Kept {
    at::Tensor values;    ///< [n, heads, tokens of all slices, d]
    at::Tensor gradient;  ///< from the backwards so far, of the slices before; undefined: none
  };

 private:
  std::map<std::string, std::shared_ptr<Kept>> kept_;
};

}  // namespace pipewright
