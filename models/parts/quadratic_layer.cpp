// SPDX-License-Identifier: Apache-2.0
#include "models/parts/quadratic_layer.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Gives c unchanged. The forward keeps a copy of the weight; the leaf itself shows the backward
/// the weight that is installed then (core/stage/weight_store.h). Their difference is multiplied by
/// `discrepancy`, or by the matrix `curvature` if that has values.
struct Discrepancy : torch::autograd::Function<Discrepancy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& c, const at::Tensor& weight,
                            double discrepancy, const at::Tensor& curvature) {
    variable_list kept{weight.detach().clone(), weight};
    if (curvature.numel() > 0) kept.push_back(curvature);
    context->save_for_backward(std::move(kept));
    context->saved_data["discrepancy"] = discrepancy;
    return c.clone();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor& gradient = gradients[0];
    if (!gradient.defined()) return {{}, {}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    const double discrepancy = context->saved_data["discrepancy"].toDouble();
    variable_list of(4);
    if (context->needs_input_grad(0)) of[0] = gradient;
    if (!context->needs_input_grad(1)) return of;
    const at::Tensor apart = saved[0] - saved[1].detach();
    of[1] = saved.size() > 2 ? at::mv(saved[2], apart) * gradient.sum()
                             : apart * (gradient.sum() * discrepancy);
    return of;
  }
};

class QuadraticLayer final : public Layer {
 public:
  explicit QuadraticLayer(QuadraticLayerOptions options) : options_(std::move(options)) {
    const std::int64_t values = options_.rows * options_.width;
    PIPEWRIGHT_CHECK(std::ssize(options_.columns) == values, options_.columns.size(), " values");
  }

  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {options_.width}, options_.start}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    const at::Tensor& weight = parameters[0];
    const at::Tensor s = input + at::linear(weight.unsqueeze(0), columns_like(weight));
    return options_.last ? s.square().sum(1, /*keepdim=*/true).mul(0.5) : s;
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor output = forward(inputs[0], parameters, buffers, pass);
    if (options_.discrepancy == 0 && options_.relative_discrepancy == 0) return {output};
    const at::Tensor given =
        inputs.size() > 1 ? inputs[1] : at::zeros({inputs[0].size(0), 1}, inputs[0].options());
    const at::Tensor c = Discrepancy::apply(given, parameters[0], options_.discrepancy,
                                            discrepancy_like(parameters[0]));
    if (options_.last) return {output + c};
    return {output, c};
  }

 private:
  /// Δ·A_kᵀA_k for a relative Δ, in the weight's format and on its device; else without values.
  at::Tensor discrepancy_like(const at::Tensor& weight) const {
    if (options_.relative_discrepancy == 0) return at::empty({0}, weight.options());
    const at::Tensor columns = columns_like(weight);
    return at::mm(columns.t(), columns) * options_.relative_discrepancy;
  }

  /// A_k in the weight's format and on its device.
  at::Tensor columns_like(const at::Tensor& weight) const {
    at::Tensor columns = at::empty({options_.rows, options_.width}, at::kDouble);
    std::ranges::copy(options_.columns, columns.mutable_data_ptr<double>());
    return columns.to(at::TensorOptions(weight.scalar_type()).device(weight.device()));
  }

  QuadraticLayerOptions options_;
};

}  // namespace

LayerPtr quadratic_layer(QuadraticLayerOptions options) {
  return std::make_shared<QuadraticLayer>(std::move(options));
}

}  // namespace pipewright
