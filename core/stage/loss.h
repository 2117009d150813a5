/// Losses: a mean over the samples they are given.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/base/registry.h"
#include "core/config/options.h"

namespace pipewright {

class Loss {
 public:
  virtual ~Loss() = default;
  /// output [n, classes], target [n], or [n, T, classes] and [n, T], int64 → scalar, mean over the
  /// n samples. Maps [n, 1, h, w] have one logit per pixel and the sample's target at each.
  /// Outputs that a loss is not for throw Error{Experiment}. Recorded by autograd where grad mode
  /// is on. Any thread.
  virtual at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const = 0;
};

}  // namespace pipewright

#define PIPEWRIGHT_LOSS(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Loss, name, Type, summary)
