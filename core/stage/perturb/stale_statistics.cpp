// SPDX-License-Identifier: Apache-2.0
#include "core/stage/perturb/stale_statistics.h"

#include <ATen/record_function.h>

namespace pipewright {

StaleStatistics::StaleStatistics(int lag, std::vector<TensorQueue::Item> buffers,
                                 const at::TensorOptions& options)
    : lag_(static_cast<std::size_t>(lag)),
      queue_("statistics", std::move(buffers), options, lag_) {}

void StaleStatistics::begin_forward(const Pass& pass, std::span<const at::Tensor> buffers) {
  if (open_ == 0) {
    const at::DisableRecordFunctionGuard unseen;  // what is queued is no activation of the pass
    queue_.push(TensorQueue::List(buffers.begin(), buffers.end()));
    if (queue_.size() > lag_) queue_.pop();
  }
  open_ = (open_ + 1) % pass.microbatches;
}

std::span<at::Tensor> StaleStatistics::evaluated(std::span<at::Tensor> buffers) {
  return queue_.size() == 0 ? buffers : std::span<at::Tensor>(*queue_.oldest());
}

}  // namespace pipewright
