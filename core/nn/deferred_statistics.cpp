// SPDX-License-Identifier: Apache-2.0
#include "core/nn/deferred_statistics.h"

#include <ATen/record_function.h>

#include "core/nn/layer.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Sets running ← (1 − momentum)·running + momentum·value.
void move_towards(at::Tensor& running, const at::Tensor& value, double momentum) {
  running.copy_((1 - momentum) * running.to(at::kDouble) + momentum * value);
}

}  // namespace

void DeferredStatistics::add(const Pass& pass, std::span<at::Tensor> running, double momentum,
                             std::int64_t count, const at::Tensor& mean,
                             const at::Tensor& variance) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unseen;  // what is gathered is no activation of the pass
  const Key key{running[0].unsafeGetTensorImpl(), pass.epoch, pass.minibatch};
  Gathered& all = gathered_[key];
  const double before = all.count, added = static_cast<double>(count);
  const at::Tensor own_mean = mean.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor own_squares = variance.to(at::kDouble) * (added - 1);
  all.count += added;
  if (all.microbatches++ == 0) {
    all.mean = own_mean;
    all.squares = own_squares;
  } else {
    const at::Tensor apart = own_mean - all.mean;
    all.mean = all.mean + apart * (added / all.count);
    all.squares = all.squares + own_squares + apart.square() * (before * added / all.count);
  }
  if (all.microbatches < pass.microbatches) return;
  move_towards(running[0], all.mean, momentum);
  move_towards(running[1], all.squares / (biased_ ? all.count : all.count - 1), momentum);
  gathered_.erase(key);
}

}  // namespace pipewright
