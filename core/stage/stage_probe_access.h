// SPDX-License-Identifier: Apache-2.0
/// Access of probes to a stage. The training beside stays as it is, to the bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/stage.h"

namespace pipewright {

/// For the thread that uses the stage.
class StageProbeAccess {
 public:
  explicit StageProbeAccess(Stage& stage) : stage_(stage) {}

  /// While `into` is set, the gradients that passes add are also added to it, one tensor per layout
  /// entry (undefined: none yet), in the wide format and memory of their own. Null: no longer.
  void record_gradients(std::vector<at::Tensor>* into);

  struct With {
    WeightKey key;
    bool noise = false;  ///< with the noise that the pass has on its weights, if it has any
  };
  /// The gradients that a kept forward and the backward `request` would add if both had the weights
  /// `with`: one tensor per layout entry, undefined where there is none, in the wide format. Runs
  /// both beside the training, whose buffers, gradients and graphs stay as they are, and installs
  /// the weights `now` again. `pass` must be the forward's; `targets` are needed on the last stage.
  std::vector<at::Tensor> gradients_with(const With& with, const WeightKey& now, int id,
                                         BackwardRequest request, const Pass& pass,
                                         const PassTargets& targets);

  /// The inputs of a kept forward, without graph.
  Tensors inputs_of(int id) const;
  /// Leaves of a graph: the parameters in a flat tensor of the stage's layout.
  std::vector<at::Tensor> leaves_of(const at::Tensor& flat) const;
  /// Runs the stage's layers with such parameters, without its head, and on copies of its buffers.
  /// Records a graph where the caller does. Computes in the wide format. Skip tensors for later
  /// stages stay behind the outputs.
  Tensors outputs_with(std::span<const at::Tensor> leaves, Tensors inputs, const Pass& pass) const;
  /// The loss of the last stage's outputs, with a graph where the caller records one.
  at::Tensor loss_of(const Tensors& outputs, const PassTargets& targets) const;

  /// Copies on the host of what the stage holds now: parameters (the newest version) and buffers by
  /// full name, and what the optimizer divides steps by, under the names of the parameters (nothing
  /// for optimizers that divide by nothing). Waits for the device.
  NamedTensors state() const;
  NamedTensors divisors() const;

 private:
  Stage& stage_;
};

}  // namespace pipewright
