// SPDX-License-Identifier: Apache-2.0
/// A linear layer whose weight gradients are added up inside the matrix product that computes them.
///
/// With M micro-batches, LibTorch computes M gradients of a weight and adds them one after another:
/// each is written to memory, read again and added to a sum that is read and written too. Where a
/// micro-batch has few samples, that memory traffic outweighs the arithmetic. The product
/// S ← S + gᵀ·x reads and writes the sum once.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/nn/layer.h"

namespace pipewright {

/// Whether linear_with_sums() is worth its overhead: many weights, few rows, several micro-batches,
/// float32 on the CPU. `rows` is [rows, in], `weight` [out, in]. The kernel then sums over all rows
/// before it adds to S, so the bits are those of two operations (measured for 1 to 192 rows and
/// eight shapes; from 256 rows on, and in float64, they are not).
bool gains_from_sums(const at::Tensor& rows, const at::Tensor& weight, const Pass& pass);

/// at::linear(), whose backward gives products for the weight's gradient to `sums`. `bias` may be
/// undefined. `sums` must outlive the graph.
at::Tensor linear_with_sums(const at::Tensor& rows, const at::Tensor& weight,
                            const at::Tensor& bias, GradientSums& sums);

}  // namespace pipewright
