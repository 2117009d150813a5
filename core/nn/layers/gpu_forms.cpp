// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/gpu_forms.h"

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// [to, from]: the share that each of `from` values has in each of `to` means.
at::Tensor shares(std::int64_t from, std::int64_t to, const at::TensorOptions& options) {
  const at::Tensor i = at::arange(to, options.dtype(at::kLong)).unsqueeze(1);
  const at::Tensor j = at::arange(from, options.dtype(at::kLong));
  const at::Tensor begin = (i * from).floor_divide(to);
  const at::Tensor end = ((i + 1) * from + to - 1).floor_divide(to);
  const at::Tensor within = (j >= begin).logical_and(j < end).to(options.dtype());
  return within / within.sum(1, /*keepdim=*/true);
}

}  // namespace

at::Tensor layer_norm_in_two_formats(const at::Tensor& input, at::IntArrayRef shape,
                                     const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const at::ScalarType format = input.scalar_type(), wide = weight.scalar_type();
  if (input.is_cpu() || format == wide) return at::layer_norm(input, shape, weight, bias, eps);
  return at::layer_norm(input.to(wide), shape, weight, bias, eps).to(format);
}

at::ScalarType at_least_float(const at::Tensor& tensor) {
  return tensor.element_size() < 4 ? at::kFloat : tensor.scalar_type();
}

at::Tensor average_to(const at::Tensor& input, std::int64_t rows, std::int64_t columns) {
  const bool one = rows == 1 && columns == 1;  // a mean, which is added in one order
  if (input.is_cuda() && !one) return average_by_products(input, rows, columns);
  return at::adaptive_avg_pool2d(input, {rows, columns});
}

at::Tensor average_by_products(const at::Tensor& input, std::int64_t rows, std::int64_t columns) {
  const at::ScalarType format = input.scalar_type();
  const at::Tensor wide = input.to(at_least_float(input));
  return at::matmul(at::matmul(shares(input.size(-2), rows, wide.options()), wide),
                    shares(input.size(-1), columns, wide.options()).t())
      .to(format);
}

}  // namespace pipewright
