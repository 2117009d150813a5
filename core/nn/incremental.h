// SPDX-License-Identifier: Apache-2.0
/// Incremental decoding: a decoder continues token by token instead of reading the whole target
/// again.
#pragma once

#include <span>

#include "core/nn/layer.h"

namespace pipewright {

/// The state that a layer carries from one call to the next, empty before the first. Dimension 0 of
/// each tensor is the batch, so that beam search selects hypotheses by selecting rows.
struct Carried {
  Tensors tensors;
  at::Tensor attention;  ///< [n, S], weights of the last target token over the source, if the layer
                         ///< attends
};

/// A layer whose output at a position depends on that position and earlier ones only.
class Incremental {
 public:
  virtual ~Incremental() = default;
  /// Does what Layer::forward_all() does in evaluation, for the positions that follow those of
  /// earlier calls.
  virtual Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                        Carried& carried) const = 0;
};

}  // namespace pipewright
