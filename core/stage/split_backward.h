/// A backward in two halves: first the gradient of the inputs, on whose way every gradient that
/// reaches an operation with parameters is kept; later, from those, the gradients of the
/// parameters. No gradient is computed twice (zero bubble: Qi et al., 2024).
///
/// The cut goes through autograd's graph, so what is inside a composite layer (attention, the steps
/// of an LSTM) is cut like the rest. An operation that reads a parameter and an activation, such as
/// a matrix product or a convolution, runs in both halves, each time for its own results; every
/// other one runs in one of them (batch-norm, and an LSTM's fused kernel on CPUs, which make both
/// together, in the first).
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

/// What the second half needs.
class WeightHalf {
 public:
  /// An operation that reads parameters, and the gradient that came to one of its outputs.
  struct Root {
    std::shared_ptr<torch::autograd::Node> operation;
    std::uint32_t output = 0;
    at::Tensor gradient;
  };
  explicit WeightHalf(std::vector<Root> roots) : roots_(std::move(roots)) {}

  /// Computes the gradients of those of `parameters` that have one, and calls their hooks as
  /// autograd::grad does. With `keep_graph` other backwards of the same forward may follow.
  void run(std::span<const at::Tensor> parameters, bool keep_graph);
  /// No other backward will go through the same forward: lets go of what only the inputs' gradients
  /// needed.
  void release_inputs(std::span<const at::Tensor> parameters);

 private:
  std::vector<Root> roots_;
};

struct InputHalf {
  std::vector<at::Tensor> of_inputs;  ///< undefined where nothing depends on the input
  WeightHalf weights;
};

/// The first half. `gradients` are those of `outputs`, all defined; `inputs` are leaves that are no
/// parameters: those whose gradient is wanted, so none for the first stage.
InputHalf backward_of_inputs(const std::vector<at::Tensor>& outputs,
                             const std::vector<at::Tensor>& gradients,
                             const std::vector<at::Tensor>& inputs,
                             std::span<const at::Tensor> parameters);

}  // namespace pipewright
