// SPDX-License-Identifier: Apache-2.0
/// A backward split into two halves (zero bubble: Qi et al., 2024). The first computes the
/// gradients of the inputs and keeps every gradient that reaches an operation with parameters; the
/// second computes from those the gradients of the parameters. No gradient is computed twice.
///
/// The cut is made in autograd's graph, so operations inside a composite layer (attention, the
/// steps of an LSTM) are split like the rest. An operation that reads a parameter and an
/// activation, such as a matrix product or a convolution, runs in both halves, each time for that
/// half's gradients. Every other operation runs in one half only. Batch-norm and the fused LSTM
/// kernel of CPUs compute both kinds of gradient at once and run in the first half.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace pipewright {

/// The second half: operations and the gradients that reached them.
class WeightHalf {
 public:
  /// An operation that reads parameters, and the gradient of one of its outputs.
  struct Root {
    std::shared_ptr<torch::autograd::Node> operation;
    std::uint32_t output = 0;
    at::Tensor gradient;
  };
  explicit WeightHalf(std::vector<Root> roots) : roots_(std::move(roots)) {}

  /// Computes the gradients of those `parameters` that the graph reaches, and calls their hooks as
  /// autograd::grad does. `keep_graph`: further backwards of the same forward follow.
  void run(std::span<const at::Tensor> parameters, bool keep_graph);
  /// Frees what only the gradients of the inputs needed. No further backward of the forward may
  /// follow.
  void release_inputs(std::span<const at::Tensor> parameters);

 private:
  std::vector<Root> roots_;
};

struct InputHalf {
  std::vector<at::Tensor> of_inputs;  ///< undefined where no output depends on the input
  WeightHalf weights;
};

/// Runs the first half. `gradients` belong to `outputs`, all defined. `inputs` are the
/// non-parameter leaves whose gradients are wanted; the first stage has none.
InputHalf backward_of_inputs(const std::vector<at::Tensor>& outputs,
                             const std::vector<at::Tensor>& gradients,
                             const std::vector<at::Tensor>& inputs,
                             std::span<const at::Tensor> parameters);

}  // namespace pipewright
