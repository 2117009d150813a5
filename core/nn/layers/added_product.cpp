// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/added_product.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostRows = 128;
constexpr std::int64_t kLeastWeights = 1 << 16;  // 256 KiB: fewer stay in a second-level cache

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AddedProduct : torch::autograd::Function<AddedProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            GradientSums* sums) {
    context->save_for_backward({rows, weight});
    context->saved_data["sums"] = reinterpret_cast<std::int64_t>(sums);
    context->saved_data["biased"] = bias.has_value();
    return at::linear(rows, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor& gradient = gradients[0];
    if (!gradient.defined()) return {{}, {}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    auto* const sums = reinterpret_cast<GradientSums*>(context->saved_data["sums"].toInt());
    variable_list of(4);
    if (context->needs_input_grad(0)) of[0] = gradient.mm(saved[1]);
    if (context->needs_input_grad(1)) of[1] = sums->add_product(saved[1], gradient.t(), saved[0]);
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2))
      of[2] = gradient.sum(0);
    return of;
  }
};

}  // namespace

bool gains_from_sums(const at::Tensor& rows, const at::Tensor& weight, const Pass& pass) {
  return pass.sums != nullptr && pass.microbatches > 1 && rows.size(0) <= kMostRows &&
         weight.numel() >= kLeastWeights && rows.is_cpu() && weight.requires_grad() &&
         rows.scalar_type() == at::kFloat && at::GradMode::is_enabled();
}

at::Tensor linear_with_sums(const at::Tensor& rows, const at::Tensor& weight,
                            const at::Tensor& bias, GradientSums& sums) {
  // A function of autograd takes no undefined tensor.
  const auto given = bias.defined() ? std::optional(bias) : std::nullopt;
  return AddedProduct::apply(rows, weight, given, &sums);
}

}  // namespace pipewright
