// SPDX-License-Identifier: Apache-2.0
/// Disturbances of a training, each in a controlled way: the section `perturb` of an experiment.
#pragma once

namespace pipewright {

/// All zero: nothing is disturbed.
struct Perturbation {
  int gradient_delay = 0;    ///< updates from a gradient to the update that applies it
  double weight_noise = 0;   ///< σ: passes read w·(1 + σn), n from N(0, 1)
  int stale_batch_norm = 0;  ///< last mini-batches that evaluations leave out of running statistics

  bool any() const { return gradient_delay > 0 || weight_noise > 0 || stale_batch_norm > 0; }
};

}  // namespace pipewright
