// SPDX-License-Identifier: Apache-2.0
/// Second implementations of layer norm and self-attention, from their formulas, in float64 (see
/// layers_reference.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::test {

/// Layer norm: statistics of each row of x [rows, width], and gradients by the formulas.
struct LayerNormReference {
  explicit LayerNormReference(const at::Tensor& x, double eps = 1e-5);
  at::Tensor forward(const at::Tensor& weight, const at::Tensor& bias) const;
  /// (g γ − mean(g γ) − x̂ mean(g γ x̂)) / σ
  at::Tensor grad_input(const at::Tensor& g, const at::Tensor& weight) const;
  at::Tensor grad_weight(const at::Tensor& g) const;  ///< Σ g x̂
  at::Tensor grad_bias(const at::Tensor& g) const;    ///< Σ g

  at::Tensor inv_std;     ///< [rows, 1]
  at::Tensor normalized;  ///< x̂
};

/// Self-attention, computed sample by sample and head by head. Parameters are in the layer's order.
/// `mask` [batch, heads, tokens, tokens] is the factor of dropout on the softmax. `allowed` [batch,
/// tokens, tokens], if defined, is 1 where a token may attend to another, else 0.
class SelfAttentionReference {
 public:
  /// x [batch, tokens, width].
  SelfAttentionReference(const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                         std::int64_t heads, const at::Tensor& mask,
                         const at::Tensor& allowed = {});

  const at::Tensor& output() const { return output_; }
  /// Gradients of the input, then of each parameter, computed with the weights `backward`.
  std::vector<at::Tensor> gradients(const at::Tensor& g,
                                    const std::vector<at::Tensor>& backward) const;

 private:
  struct Head {
    at::Tensor q, k, v, shares, dropped;  ///< [tokens, d], and [tokens, tokens] for the last two
  };
  Head head(std::int64_t sample, std::int64_t h) const;

  at::Tensor mask_, allowed_;
  at::Tensor x_, projected_;  ///< rows [batch · tokens, width], [batch · tokens, 3 · width]
  std::int64_t batch_, tokens_, width_, heads_;
  at::Tensor mixed_, output_;
};

}  // namespace pipewright::test
