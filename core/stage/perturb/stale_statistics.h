// SPDX-License-Identifier: Apache-2.0
/// Running statistics that lag behind in evaluations: `perturb.stale_batch_norm`.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "core/nn/layer.h"
#include "core/stage/perturb/tensor_queue.h"

namespace pipewright {

/// The buffers of a stage as they were before the forwards of each of the last `lag` mini-batches.
/// An evaluation reads the oldest of them, in which the last `lag` mini-batches leave no trace;
/// before there are as many, these are the buffers that the training began with.
class StaleStatistics {
 public:
  StaleStatistics(int lag, std::vector<TensorQueue::Item> buffers,
                  const at::TensorOptions& options);

  /// A forward of the training begins. `buffers` are those of the stage.
  void begin_forward(const Pass& pass, std::span<const at::Tensor> buffers);
  /// What an evaluation reads in place of `buffers`.
  std::span<at::Tensor> evaluated(std::span<at::Tensor> buffers);

  TensorQueue& queue() { return queue_; }
  const TensorQueue& queue() const { return queue_; }

 private:
  std::size_t lag_;
  int open_ = 0;  ///< forwards of a mini-batch that has begun and has more of them
  TensorQueue queue_;
};

}  // namespace pipewright
