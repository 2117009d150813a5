// SPDX-License-Identifier: Apache-2.0
/// Gradients that later updates apply: `perturb.gradient_delay`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/stage/perturb/tensor_queue.h"

namespace pipewright {

/// A list of gradients has one per parameter, in the wide format; undefined: none.
class DelayedGradients {
 public:
  DelayedGradients(int delay, std::vector<TensorQueue::Item> parameters,
                   const at::TensorOptions& options)
      : delay_(static_cast<std::size_t>(delay)),
        queue_("gradient", std::move(parameters), options, delay_) {}

  /// Keeps the gradients of an update, or none if loss scaling has discarded them, and returns
  /// those of `delay` updates before, if there are any.
  std::optional<TensorQueue::List> exchange(const std::optional<TensorQueue::List>& newest) {
    queue_.push(newest);
    if (queue_.size() <= delay_) return {};
    return queue_.pop();
  }
  /// Number of updates whose gradients are still to be applied.
  std::int64_t waiting() const { return queue_.lists(); }

  TensorQueue& queue() { return queue_; }
  const TensorQueue& queue() const { return queue_; }

 private:
  std::size_t delay_;
  TensorQueue queue_;
};

}  // namespace pipewright
