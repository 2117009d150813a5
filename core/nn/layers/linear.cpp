// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostRows = 128;
constexpr std::int64_t kLeastWeights = 1 << 16;  // 256 KiB: fewer stay in a second-level cache

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Adds the weight's gradients up inside the matrix product that computes them.
///
/// With M micro-batches, LibTorch computes M gradients of a weight and adds them one after another:
/// each is written to memory, read again and added to a sum that is read and written too. Where a
/// micro-batch has few samples, that memory traffic outweighs the arithmetic. The product
/// S ← S + gᵀ·x reads and writes the sum once.
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
    variable_list results(4);
    if (context->needs_input_grad(0)) results[0] = gradient.mm(saved[1]);
    if (context->needs_input_grad(1))
      results[1] = sums->add_product(saved[1], gradient.t(), saved[0]);
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2))
      results[2] = gradient.sum(0);
    return results;
  }
};

/// Whether linear_with_sums() is worth its overhead: many weights, few rows, several micro-batches,
/// float32 on the CPU. `rows` is [rows, in], `weight` [out, in]. The kernel then sums over all rows
/// before it adds to S, so the bits are those of two operations (measured for 1 to 192 rows and
/// eight shapes; from 256 rows on, and in float64, they are not).
bool gains_from_sums(const at::Tensor& rows, const at::Tensor& weight, const Pass& pass) {
  return pass.sums != nullptr && pass.microbatches > 1 && rows.size(0) <= kMostRows &&
         weight.numel() >= kLeastWeights && rows.is_cpu() && weight.requires_grad() &&
         rows.scalar_type() == at::kFloat && at::GradMode::is_enabled();
}

/// at::linear(), whose backward gives products for the weight's gradient to `sums`. `bias` may be
/// undefined. `sums` must outlive the graph.
at::Tensor linear_with_sums(const at::Tensor& rows, const at::Tensor& weight,
                            const at::Tensor& bias, GradientSums& sums) {
  // A function of autograd takes no undefined tensor.
  const auto given = bias.defined() ? std::optional(bias) : std::nullopt;
  return AddedProduct::apply(rows, weight, given, &sums);
}

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
    std::vector<ParameterSpec> specs{
        {.name = "weight", .shape = {out_, in_}, .init = options_.weight.value_or(weight)}};
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
