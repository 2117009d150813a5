// SPDX-License-Identifier: Apache-2.0
/// Operators in forms for devices whose own kernel refuses formats that the CPU's takes, or adds in
/// an order that differs from run to run. On the CPU LibTorch's operator is called as it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pipewright {

/// Layer norm (Ba et al., 2016) over the last dimensions, which have `shape`, with weight and bias
/// in the wide format and the input in either. The CPU's operator takes both formats and computes
/// in the wide one; others get the wide one, and the result is rounded to the input's.
at::Tensor layer_norm_in_two_formats(const at::Tensor& input, at::IntArrayRef shape,
                                     const at::Tensor& weight, const at::Tensor& bias, double eps);

/// x/√(mean of x² + eps) over the last dimension (Zhang & Sennrich, 2019), times `weight` [width]
/// unless that is undefined. Computes in the format of `weight`, or in float32 where it is
/// undefined and x has fewer bits, and gives that of x.
at::Tensor rms_normalized(const at::Tensor& x, const at::Tensor& weight, double eps);

/// The tensor's format, or float32 if it has fewer bits.
at::ScalarType at_least_float(const at::Tensor& tensor);

/// Averages images [n, c, h, w], or [c, h, w], to [.., rows, columns] as
/// `at::adaptive_avg_pool2d`: row i is the mean of the rows from ⌊i·h/rows⌋ to ⌈(i+1)·h/rows⌉,
/// columns alike. CUDA's backward of that adds atomically, so there it is two products of matrices.
at::Tensor average_to(const at::Tensor& input, std::int64_t rows, std::int64_t columns);

/// The operators that average_by_products() of images [n, c, h, w] in float32 starts.
inline constexpr int kOperatorsOfProducts = 32;
/// The same as two products on any device.
at::Tensor average_by_products(const at::Tensor& input, std::int64_t rows, std::int64_t columns);

}  // namespace pipewright
