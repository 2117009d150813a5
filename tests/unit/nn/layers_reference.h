// SPDX-License-Identifier: Apache-2.0
/// Second implementations of layers, from their formulas, in float64. Forward and backward are
/// separate, so that they may use different weights. They use plain loops and elementwise
/// arithmetic, and none of the operators that the layers call. g is the gradient at the output.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::test {

struct ConvolutionReference {
  std::int64_t stride = 1, padding = 0;

  /// y[n,o,i,j] = b[o] + Σ_{c,u,v} x[n,c,is+u−p,js+v−p] w[o,c,u,v]; `b` may be undefined.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const;
  at::Tensor grad_input(const at::Tensor& g, const at::Tensor& x, const at::Tensor& w) const;
  at::Tensor grad_weight(const at::Tensor& g, const at::Tensor& x, const at::Tensor& w) const;
};

/// Batch norm: statistics of x over all dimensions but 1, and gradients by the formulas.
struct BatchNormReference {
  explicit BatchNormReference(const at::Tensor& x, double eps = 1e-5);
  at::Tensor forward(const at::Tensor& weight, const at::Tensor& bias) const;
  /// γ/σ (g − mean(g) − x̂ mean(g x̂))
  at::Tensor grad_input(const at::Tensor& g, const at::Tensor& weight) const;
  at::Tensor grad_weight(const at::Tensor& g) const;  ///< Σ g x̂
  at::Tensor grad_bias(const at::Tensor& g) const;    ///< Σ g

  double count;                        ///< values per channel
  at::Tensor mean, variance, inv_std;  ///< [channels]; variance biased
  at::Tensor normalized;               ///< x̂
};

/// Max-pooling without padding.
struct MaxPoolReference {
  std::int64_t kernel, stride;
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor grad_input(const at::Tensor& g, const at::Tensor& x) const;
};

/// Bin i of n over `extent` is [⌊i·extent/n⌋, ⌈(i+1)·extent/n⌉).
struct AveragePoolReference {
  std::int64_t size;
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor grad_input(const at::Tensor& g, const at::Tensor& x) const;
};

/// The linear layer Σ_i x[·,i] w[·,i] + b for x [n, in] and w [out, in], by loops.
at::Tensor linear_reference(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
/// The matrix product a[n, k] b[k, m], by loops.
at::Tensor product_reference(const at::Tensor& a, const at::Tensor& b);

at::Tensor relu_reference(const at::Tensor& x);
/// Gradient at the input of ReLU: g where the output y is positive, else 0.
at::Tensor relu_backward_reference(const at::Tensor& g, const at::Tensor& y);

/// The mask of `dropout(p)` called `name`, from its definition.
at::Tensor dropout_mask_reference(at::IntArrayRef shape, double probability, std::uint64_t seed,
                                  const char* name, int epoch, int minibatch,
                                  std::int64_t first_sample);

}  // namespace pipewright::test
