/// What lets a decoder go on token by token instead of reading the whole target again.
#pragma once

#include <span>

#include "core/stage/layer.h"

namespace pipewright {

/// What a layer keeps from one call to the next; none at first. Batch is dimension 0 of each, so a
/// search chooses among its hypotheses by choosing rows.
struct Carried {
  Tensors tensors;
  at::Tensor attention;  ///< [n, S] of the last target token over the source, if the layer attends
};

/// A layer whose output at a place depends on that place and on the ones before.
class Incremental {
 public:
  virtual ~Incremental() = default;
  /// Layer::forward_all() in evaluation of the places that follow those of the calls before.
  virtual Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                        Carried& carried) const = 0;
};

}  // namespace pipewright
