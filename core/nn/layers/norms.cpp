// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::ScalarType wide_format(const at::Tensor& x, const at::Tensor& weight) {
  return weight.defined() ? weight.scalar_type() : at_least_float(x);
}

/// A GPU's norm is one operator, in the wide format.
int operators_of_norm(const at::Tensor& x, at::ScalarType wide) {
  return x.scalar_type() == wide ? 1 : 3;
}

/// With r = 1/√(mean x² + eps) and n numbers a row: y = w x r, so that for a gradient g
///   dx = r (g w) − x r³/n Σ (g w x),   dw = Σ over rows of g x r.
struct RmsNormalized : torch::autograd::Function<RmsNormalized> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& weight, double eps) {
    const at::Tensor gain = weight.value_or(at::Tensor());
    const at::Tensor wide = x.to(wide_format(x, gain));
    const at::Tensor root = wide.square().mean(-1, true).add_(eps).rsqrt_();
    context->save_for_backward({x, gain, root});
    at::Tensor y = wide * root;
    if (gain.defined()) y.mul_(gain);
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return {{}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gain = saved[1], &root = saved[2];
    const at::Tensor wide = x.to(root.scalar_type()), g = gradients[0].to(root.scalar_type());
    variable_list results(3);
    if (gain.defined() && context->needs_input_grad(1))
      results[1] = (wide * root).mul_(g).reshape({-1, gain.size(0)}).sum(0);
    if (!context->needs_input_grad(0)) return results;
    const at::Tensor weighted = gain.defined() ? g * gain : g;
    const at::Tensor along = (weighted * wide).mean(-1, true).mul_(root.pow(3));
    results[0] = (weighted * root).addcmul_(wide, along, -1).to(x.scalar_type());
    return results;
  }
};

class LayerNorm final : public Layer {
 public:
  LayerNorm(std::int64_t width, double eps) : width_(width), eps_(eps) {
    PIPEWRIGHT_CHECK(width > 0, "layer norm of width ", width);
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    return {{.name = "weight", .shape = {width_}, .init = {Kind::Constant, 1}, .exact = true},
            {.name = "bias", .shape = {width_}, .init = {Kind::Constant, 0}, .exact = true}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    if (input.is_meta())
      return made_on_meta({input, parameters[0], parameters[1]}, at::empty_like(input),
                          {input, at::empty({2, input.numel() / width_}, parameters[0].options())},
                          operators_of_norm(input, parameters[0].scalar_type()));
    return layer_norm_in_two_formats(input, parameters[0].sizes(), parameters[0], parameters[1],
                                     eps_);
  }

 private:
  std::int64_t width_;
  double eps_;
};

class RmsNorm final : public Layer {
 public:
  RmsNorm(std::int64_t width, double eps) : width_(width), eps_(eps) {
    PIPEWRIGHT_CHECK(width > 0, "RMS norm of width ", width);
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    return {{.name = "weight", .shape = {width_}, .init = {Kind::Constant, 1}, .exact = true}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    return rms_normalized(input, parameters[0], eps_);
  }

 private:
  std::int64_t width_;
  double eps_;
};

}  // namespace

at::Tensor rms_normalized(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (x.is_meta()) {
    std::vector<std::int64_t> rows = x.sizes().vec();
    rows.back() = 1;
    const at::Tensor root = at::empty(rows, x.options().dtype(wide_format(x, weight)));
    return made_on_meta({x, weight}, at::empty_like(x), {x, root},
                        operators_of_norm(x, root.scalar_type()));
  }
  const auto gain = weight.defined() ? std::optional(weight) : std::nullopt;
  if (!x.is_cpu()) {  // LibTorch has one kernel for it there
    const at::Tensor wide = x.to(wide_format(x, weight));
    return at::rms_norm(wide, {x.size(-1)}, gain, eps).to(x.scalar_type());
  }
  return RmsNormalized::apply(x, gain, eps);
}

LayerPtr layer_norm(std::int64_t width, double eps) {
  return std::make_shared<LayerNorm>(width, eps);
}

LayerPtr rms_norm(std::int64_t width, double eps) {
  return std::make_shared<RmsNorm>(width, eps);
}

}  // namespace pipewright
