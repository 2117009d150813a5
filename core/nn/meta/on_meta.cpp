// SPDX-License-Identifier: Apache-2.0
#include "core/nn/meta/on_meta.h"

#include <torch/csrc/autograd/custom_function.h>

#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Wraps the tensors in a struct, as autograd would take bare tensor arguments for inputs.
struct Made {
  at::Tensor output;
  std::vector<at::Tensor> kept;
};

struct Operator : torch::autograd::Function<Operator> {
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs, const Made& made) {
    c10::List<std::vector<std::int64_t>> shapes;
    for (const at::Tensor& input : inputs) shapes.push_back(input.sizes().vec());
    context->saved_data["shapes"] = shapes;
    context->save_for_backward(made.kept);
    return made.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list of_inputs;
    const auto shapes = context->saved_data["shapes"].to<c10::List<std::vector<std::int64_t>>>();
    const auto images = gradients[0].suggest_memory_format();
    for (std::size_t i = 0; i < shapes.size(); ++i)
      of_inputs.push_back(
          context->needs_input_grad(i)
              ? at::empty(shapes.get(i), gradients[0].options(),
                          shapes.get(i).size() == 4 ? images : at::MemoryFormat::Contiguous)
              : at::Tensor());
    of_inputs.emplace_back();  // `made` has no gradient
    return of_inputs;
  }
};

}  // namespace

at::Tensor made_on_meta(const std::vector<at::Tensor>& inputs, const at::Tensor& output,
                        const std::vector<at::Tensor>& kept, std::int64_t operators) {
  count_operators(operators);
  variable_list defined;
  for (const at::Tensor& input : inputs)
    if (input.defined()) defined.push_back(input);
  return Operator::apply(at::TensorList(defined), Made{output, kept});
}

}  // namespace pipewright
