/// Layer norm and self-attention again, from their formulas and in float64, as layers_reference.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::test {

/// Statistics of each row of x [rows, width], and what the formulas make of them.
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

/// One sample after another, one head after another. Parameters in the layer's order; `mask` is
/// what dropout multiplies the softmax with, [batch, heads, tokens, tokens]; `allowed`, if defined,
/// is 1 where a token attends to another, else 0, [batch, tokens, tokens].
class SelfAttentionReference {
 public:
  /// x [batch, tokens, width].
  SelfAttentionReference(const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                         std::int64_t heads, const at::Tensor& mask,
                         const at::Tensor& allowed = {});

  const at::Tensor& output() const { return output_; }
  /// Of the input, then of each parameter, through the weights `backward`.
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
