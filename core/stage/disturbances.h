// SPDX-License-Identifier: Apache-2.0
/// Disturbances of a training, each in a controlled way: the section `perturb` of an experiment.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/stage/gradient_sums.h"
#include "core/stage/tensor_queue.h"
#include "core/stage/weight_noise.h"

namespace pipewright {

/// All zero: nothing is disturbed.
struct Perturbation {
  int gradient_delay = 0;    ///< updates from a gradient to the update that applies it
  double weight_noise = 0;   ///< σ: passes read w·(1 + σn), n from N(0, 1)
  int stale_batch_norm = 0;  ///< last mini-batches that evaluations leave out of running statistics

  bool any() const { return gradient_delay > 0 || weight_noise > 0 || stale_batch_norm > 0; }
  /// That of a replica of a stage: only replica 0 evaluates.
  Perturbation of_replica(int replica) const {
    return {gradient_delay, weight_noise, replica == 0 ? stale_batch_norm : 0};
  }
  /// Tensors as large as the weights that a stage keeps for it, in the wide format: waiting
  /// gradients, the factors of the weights, and the weights times them. In mixed precision
  /// narrow_slots() more are in the narrow one.
  int slots() const { return gradient_delay + (weight_noise > 0 ? 2 : 0); }
  int narrow_slots() const { return weight_noise > 0 ? 1 : 0; }
};

/// The disturbances of a stage replica. Used by the thread of its stage.
class Disturbances {
 public:
  /// `buffers` are those of the stage. The layout must outlive it.
  Disturbances(const Perturbation& perturbation, const FlatLayout& layout,
               std::vector<TensorQueue::Item> buffers, const at::TensorOptions& options);

  /// Noise on the weights that passes read.
  std::optional<WeightNoise>& noise() { return noise_; }

  /// Gradients that later updates apply: before an update, exchanges the sums for those that it
  /// applies, from `gradient_delay` updates before. Gradients that are not finite in float16 are
  /// discarded, as LossScale::skip() has it, and leave a gap.
  void delay(WeightGradients& gradients, int stage);
  bool delays() const { return delay_ > 0; }
  /// Whether the next update has no gradients to apply.
  bool is_idle() const { return idle_; }
  /// Number of updates whose gradients are still to be applied.
  std::int64_t waiting() const { return gradients_.lists(); }

  /// Running statistics that lag behind in evaluations: what one reads in place of `buffers` is
  /// their state before the forwards of the last `stale_batch_norm` mini-batches, in which these
  /// leave no trace; before there are as many, that at the beginning of the training.
  std::span<at::Tensor> evaluated(std::span<at::Tensor> buffers);
  /// A forward of the training begins. `buffers` are those of the stage.
  void begin_forward(const Pass& pass, std::span<const at::Tensor> buffers);

  /// Between schedules: gradients and statistics that wait, as TensorQueue::state() names them.
  /// restore() takes them back, also in parts and among those of other stages; it throws
  /// Error{Data} if one does not fit.
  NamedTensors state() const;
  void restore(const NamedTensors& saved);
  /// A tensor that restore() should have been given and was not; "": none.
  std::string missing() const { return statistics_.missing(); }

 private:
  std::optional<WeightNoise> noise_;
  std::size_t delay_, lag_;
  TensorQueue gradients_, statistics_;
  bool idle_ = false;
  int open_ = 0;  ///< forwards that the present mini-batch has had; 0 after its last
};

}  // namespace pipewright
