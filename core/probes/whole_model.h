// SPDX-License-Identifier: Apache-2.0
/// A copy of a whole model at the weights of one instant, for measurements that need second
/// derivatives. It computes in the wide format, contiguous, on the device of its weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layer.h"
#include "core/nn/loss.h"
#include "core/tensors/named_tensors.h"

namespace pipewright {

/// A model with the weights of one instant, and samples to measure it with.
struct ModelInstant {
  const std::vector<LayerPtr>& layers;
  const std::vector<std::int64_t>& layers_per_stage;
  const Loss& loss;
  /// Parameters and buffers under their full names; others may be among them.
  const NamedTensors& state;
  /// What the optimizer divides steps by, under the names of the parameters; empty: nothing.
  const NamedTensors& preconditioner;
  Tensors inputs;
  at::Tensor targets;
  std::uint64_t seed = 1;
};

class WholeModel {
 public:
  /// Runs a forward and a backward that can be differentiated again. Dropout draws as in mini-batch
  /// 0 of epoch 0; batch norm has the samples' statistics. The argument must outlive it. Throws
  /// c10::Error if a layer has no second derivative, here or in product().
  explicit WholeModel(const ModelInstant& model);

  /// Elements of a stage's parameters; −1: of all stages'.
  std::int64_t size(int stage) const;
  at::TensorOptions options() const;
  /// The Hessian of the mean loss with respect to these parameters times a vector [size(stage)].
  at::Tensor product(int stage, const at::Tensor& vector) const;
  /// The optimizer's preconditioner of these parameters, [size(stage)]; undefined: it has none.
  at::Tensor preconditioner(int stage) const;

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  Range range(int stage) const;

  std::vector<at::Tensor> parameters_, gradients_, preconditioner_;
  std::vector<std::size_t> stage_ends_;  ///< [stage]: end of its parameters
};

}  // namespace pipewright
