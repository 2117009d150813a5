// SPDX-License-Identifier: Apache-2.0
/// Losses. A loss is a mean over the samples that it is given.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/task.h"

namespace pipewright {

class Loss {
 public:
  virtual ~Loss() = default;
  /// Returns the mean loss over n samples, a scalar. Shapes: output [n, classes] with target [n],
  /// or [n, T, classes] with [n, T]; targets are int64. Output [n, k] with target [n, k] of real
  /// numbers, for the losses of Task::Regress. A map [n, 1, h, w] has one logit per pixel,
  /// and every pixel has its sample's target. Throws Error{Experiment} for shapes that the loss
  /// does not accept. Autograd records it where grad mode is on. Any thread may call it.
  virtual at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// Returns the part that a slice of the sequences has in the loss of samples whose targets are
  /// `whole`, [n, T]: the parts of all slices add up to that loss. The default is right for a loss
  /// that is the mean over all positions. Otherwise as above.
  virtual at::Tensor of_slice(const at::Tensor& output, const at::Tensor& target,
                              const at::Tensor& whole) const;
  /// Whether it is a loss for that task.
  virtual bool fits(Task task) const { return task != Task::Minimize && task != Task::Regress; }
};

}  // namespace pipewright

#define PIPEWRIGHT_LOSS(name, Type, summary)  \
  PIPEWRIGHT_STAMP(loss, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Loss, name, Type, summary)
