// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/layers/added_product.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Linear final : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, LinearOptions options)
      : in_(in), out_(out), options_(options) {
    PIPEWRIGHT_CHECK(in > 0 && out > 0, "linear ", in, " to ", out);
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    const Initializer uniform{Kind::Uniform, 1 / std::sqrt(static_cast<double>(in_))};
    const bool normal = options_.init_std > 0;
    const Initializer weight = normal ? Initializer{Kind::Normal, options_.init_std} : uniform;
    const Initializer bias = normal ? Initializer{Kind::Constant, 0} : uniform;
    std::vector<ParameterSpec> specs{{"weight", {out_, in_}, options_.weight.value_or(weight)}};
    if (options_.bias) specs.push_back({"bias", {out_}, options_.bias_init.value_or(bias)});
    return specs;
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass& pass) const override {
    if (input.dim() == 2) return of_rows(input, parameters, pass);
    const auto rows = options_.flatten ? input.size(0) : input.numel() / in_;
    const at::Tensor output = of_rows(input.reshape({rows, in_}), parameters, pass);
    if (options_.flatten) return output;
    std::vector<std::int64_t> shape = input.sizes().vec();
    shape.back() = out_;
    return output.view(shape);
  }

 private:
  /// Computes [rows, out] from [rows, in]. A linear of more dimensions would return a view, and an
  /// in-place activation of a view makes autograd copy the gradient.
  at::Tensor of_rows(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     const Pass& pass) const {
    const at::Tensor& weight = parameters[0];
    const at::Tensor bias = options_.bias ? parameters[1] : at::Tensor();
    return activate_in_place(options_.activation,
                             gains_from_sums(input, weight, pass)
                                 ? linear_with_sums(input, weight, bias, *pass.sums)
                                 : at::linear(input, weight, bias));
  }

  std::int64_t in_, out_;
  LinearOptions options_;
};

}  // namespace

LayerPtr linear(std::int64_t in, std::int64_t out, LinearOptions options) {
  return std::make_shared<Linear>(in, out, options);
}

}  // namespace pipewright
