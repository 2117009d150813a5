// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nn/attention_reference.h"

#include <cmath>

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

at::Tensor row_means(const at::Tensor& x) {
  return x.sum(1, /*keepdim=*/true) / x.size(1);
}

}  // namespace

LayerNormReference::LayerNormReference(const at::Tensor& x, double eps)
    : inv_std((row_means((x - row_means(x)).square()) + eps).rsqrt()),
      normalized((x - row_means(x)) * inv_std) {}

at::Tensor LayerNormReference::forward(const at::Tensor& weight, const at::Tensor& bias) const {
  return normalized * weight + bias;
}

at::Tensor LayerNormReference::grad_input(const at::Tensor& g, const at::Tensor& weight) const {
  const at::Tensor gw = g * weight;
  return inv_std * (gw - row_means(gw) - normalized * row_means(gw * normalized));
}

at::Tensor LayerNormReference::grad_weight(const at::Tensor& g) const {
  return (g * normalized).sum(0);
}

at::Tensor LayerNormReference::grad_bias(const at::Tensor& g) const {
  return g.sum(0);
}

SelfAttentionReference::SelfAttentionReference(const at::Tensor& x,
                                               const std::vector<at::Tensor>& parameters,
                                               std::int64_t heads, const at::Tensor& mask,
                                               const at::Tensor& allowed)
    : mask_(mask),
      allowed_(allowed),
      x_(x.reshape({-1, x.size(2)})),
      projected_(linear_reference(x_, parameters[0], parameters[1])),
      batch_(x.size(0)),
      tokens_(x.size(1)),
      width_(x.size(2)),
      heads_(heads),
      mixed_(at::empty_like(x_)) {
  const std::int64_t d = width_ / heads_;
  for (std::int64_t s = 0; s < batch_; ++s)
    for (std::int64_t h = 0; h < heads_; ++h) {
      const Head at_head = head(s, h);
      mixed_.narrow(0, s * tokens_, tokens_)
          .narrow(1, h * d, d)
          .copy_(product_reference(at_head.dropped, at_head.v));
    }
  output_ = linear_reference(mixed_, parameters[2], parameters[3]).view(x.sizes());
}

SelfAttentionReference::Head SelfAttentionReference::head(std::int64_t sample,
                                                          std::int64_t h) const {
  const std::int64_t d = width_ / heads_;
  const auto part = [&](std::int64_t which) {
    return projected_.narrow(0, sample * tokens_, tokens_).narrow(1, which * width_ + h * d, d);
  };
  Head out{.q = part(0), .k = part(1), .v = part(2)};
  at::Tensor exponentials =
      (product_reference(out.q, out.k.t()) / std::sqrt(static_cast<double>(d))).exp();
  if (allowed_.defined()) exponentials = exponentials * allowed_[sample];
  out.shares = exponentials / exponentials.sum(1, /*keepdim=*/true);
  out.dropped = out.shares * mask_[sample][h];
  return out;
}

std::vector<at::Tensor> SelfAttentionReference::gradients(
    const at::Tensor& g, const std::vector<at::Tensor>& backward) const {
  const std::int64_t d = width_ / heads_;
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const at::Tensor rows = g.reshape({-1, width_});
  const at::Tensor g_mixed = product_reference(rows, backward[2]);
  at::Tensor g_projected = at::empty_like(projected_);
  for (std::int64_t s = 0; s < batch_; ++s)
    for (std::int64_t h = 0; h < heads_; ++h) {
      const Head at_head = head(s, h);
      const at::Tensor g_head = g_mixed.narrow(0, s * tokens_, tokens_).narrow(1, h * d, d);
      const at::Tensor g_shares = product_reference(g_head, at_head.v.t()) * mask_[s][h];
      const at::Tensor g_scores =
          at_head.shares * (g_shares - (g_shares * at_head.shares).sum(1, /*keepdim=*/true));
      const auto put = [&](std::int64_t which, const at::Tensor& value) {
        g_projected.narrow(0, s * tokens_, tokens_)
            .narrow(1, which * width_ + h * d, d)
            .copy_(value);
      };
      put(0, product_reference(g_scores, at_head.k) * scale);
      put(1, product_reference(g_scores.t(), at_head.q) * scale);
      put(2, product_reference(at_head.dropped.t(), g_head));
    }
  return {product_reference(g_projected, backward[0]).view(g.sizes()),
          product_reference(g_projected.t(), x_), g_projected.sum(0),
          product_reference(rows.t(), mixed_), rows.sum(0)};
}

}  // namespace pipewright::test
