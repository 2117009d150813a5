// SPDX-License-Identifier: Apache-2.0
/// Losses. A loss is a mean over the samples that it is given.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <utility>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/task.h"

namespace pipewright {

/// The targets of a pass's samples. `whole`: the targets of whole sequences of which these are a
/// slice or, of a loss over the mini-batch, those of the whole mini-batch; else undefined.
struct PassTargets {
  PassTargets(at::Tensor of_pass = {}, at::Tensor of_all = {})
      : own(std::move(of_pass)), whole(std::move(of_all)) {}
  at::Tensor own, whole;
};

class Loss {
 public:
  virtual ~Loss() = default;
  /// Returns the mean loss over n samples, a scalar. Shapes: output [n, classes] with target [n],
  /// or [n, T, classes] with [n, T]; targets are int64. Output [n, k] with target [n, k] of real
  /// numbers, for the losses of Task::Regress. Output and target of one shape, [n, …], for those of
  /// Task::Label; with target [n] every logit of an output [n, 1, …] has its sample's target.
  /// Throws Error{Experiment} for shapes that the loss does not accept. Autograd records it where
  /// grad mode is on. Any thread may call it.
  virtual at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// Returns the part that these samples, or a slice of their sequences, have in the loss of the
  /// samples whose targets are `whole`, [n, T]: the parts add up to that loss if each is weighed by
  /// its samples. The default is right for a loss that is the mean over all positions, of which
  /// only sequences are cut. Otherwise as above.
  virtual at::Tensor of_part(const at::Tensor& output, const at::Tensor& target,
                             const at::Tensor& whole) const;
  /// The loss of a pass, weighed by its samples a part of the mini-batch's.
  at::Tensor of_pass(const at::Tensor& output, const PassTargets& targets) const {
    return targets.whole.defined() ? of_part(output, targets.own, targets.whole)
                                   : (*this)(output, targets.own);
  }
  /// Whether it is a mean over all targets of the mini-batch, not over samples: of_part() then
  /// needs the targets of the whole mini-batch.
  virtual bool over_minibatch() const { return false; }
  /// The targets that it wants of a data set that can give several kinds: Classify (of any task
  /// with classes), Regress or Label.
  virtual Task compares_with() const { return Task::Classify; }
  /// Whether it is a loss for that task.
  virtual bool fits(Task task) const {
    return task == Task::Classify || task == Task::Continue || task == Task::Translate;
  }
};

}  // namespace pipewright

#define PIPEWRIGHT_LOSS(name, Type, summary)  \
  PIPEWRIGHT_STAMP(loss, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Loss, name, Type, summary)
