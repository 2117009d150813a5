// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/nn/layers/attention_core.h"
#include "core/nn/layers/earlier_slices.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"

namespace pipewright {
AttentionCore::AttentionCore(std::int64_t heads, AttentionOptions options)
    : heads_(heads),
      options_(options),
      dropout_(dropout(options_.dropout)),
      tables_(options.rotary.value_or(RotaryOptions{})) {
  if (options_.key_heads == 0) options_.key_heads = heads;
  PIPEWRIGHT_CHECK(heads > 0 && heads % options_.key_heads == 0, heads, " attention heads, ",
                   options_.key_heads, " of keys");
}

at::Tensor AttentionCore::attend(const at::Tensor& queries, const at::Tensor& own_keys,
                                 const at::Tensor& v, const at::Tensor& keys,
                                 const Pass& pass) const {
  at::Tensor q = queries, k = own_keys;
  if (options_.norm_eps) {
    q = rms_normalized(q, {}, *options_.norm_eps);
    k = rms_normalized(k, {}, *options_.norm_eps);
  }
  if (options_.rotary) {
    const std::int64_t tokens = q.size(-2);
    const RotaryTable table = tables_.of(pass.slice * tokens, tokens, q.size(-1), q);
    q = rotated(q, table);
    k = rotated(k, table);
  }
  if (pass.earlier == nullptr) return attend_to_all(q, k, v, keys, pass);
  PIPEWRIGHT_CHECK(options_.causal && !keys.defined(), "attention '", name_, "' is not causal");
  return attend_to_all(q, pass.earlier->continued(name_ + ".k", k, pass),
                       pass.earlier->continued(name_ + ".v", v, pass), keys, pass);
}

/// With dropout the steps are written out, because LibTorch's operator would draw from a global
/// generator.
at::Tensor AttentionCore::attend_to_all(const at::Tensor& q, const at::Tensor& own_keys,
                                        const at::Tensor& values, const at::Tensor& keys,
                                        const Pass& pass) const {
  const at::Tensor k = for_all_heads(own_keys), v = for_all_heads(values);
  const double scale =
      options_.scale > 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  if (!(options_.dropout > 0 && pass.training)) {
    const bool square = q.size(-2) == k.size(-2);  // else keys of earlier slices come first
    if (q.is_meta()) {
      count_multiply_adds(2 * static_cast<double>(q.numel()) * static_cast<double>(k.size(-2)));
      constexpr int kOfScores = 3;  // a mask becomes numbers that are added to the scores
      const bool masked = keys.defined() || (options_.causal && !square);
      const at::Tensor output = at::empty_like(q);
      return made_on_meta({q, k, v}, output, {q, k, v, output, at::empty_like(q.select(-1, 0))},
                          masked ? 1 + kOfScores + operators_of_mask(keys) : 1);
    }
    if (!keys.defined() && (square || !options_.causal))
      return at::scaled_dot_product_attention(q, k, v, {}, 0, options_.causal, scale);
    return at::scaled_dot_product_attention(q, k, v, allowed(q, k, keys), 0, false, scale);
  }
  const at::Tensor scaled = q * scale;
  at::Tensor shares = at::matmul(scaled, k.transpose(-2, -1));
  if (q.is_meta()) {
    shares = shares_on_meta(shares, keys);
  } else if (const at::Tensor mask = allowed(q, k, keys); mask.defined()) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    shares = at::_safe_softmax(
        shares.masked_fill(mask.logical_not(), kNever).to(at_least_float(shares)), -1);
  } else {
    shares = at::softmax(shares, -1, at_least_float(shares));
  }
  return at::matmul(dropout_->forward(shares, {}, {}, pass).to(v.scalar_type()), v);
}

/// Softmax on the meta device: the backward saves the result and, if there is one, the mask.
at::Tensor AttentionCore::shares_on_meta(const at::Tensor& scores, const at::Tensor& keys) const {
  const at::Tensor shares = at::empty_like(scores);
  std::vector<at::Tensor> kept{shares};
  const bool masked = keys.defined() || options_.causal;
  if (masked)
    kept.push_back(at::empty({keys.defined() ? scores.size(0) : 1, 1,
                              options_.causal ? scores.size(2) : 1, scores.size(3)},
                             scores.options().dtype(at::kBool)));
  constexpr int kMasked = 3 + 5;  // its inverse, which fills a copy; LibTorch's _safe_softmax
  return made_on_meta({scores}, shares, kept, masked ? kMasked + operators_of_mask(keys) : 1);
}

int AttentionCore::operators_of_mask(const at::Tensor& keys) const {
  if (!options_.causal) return 0;
  return keys.defined() ? 3 : 2;  // ones and their triangle, and both masks together
}

at::Tensor AttentionCore::allowed(const at::Tensor& q, const at::Tensor& k,
                                  const at::Tensor& keys) const {
  at::Tensor mask;
  if (keys.defined()) mask = keys.view({keys.size(0), 1, 1, keys.size(1)});
  if (!options_.causal) return mask;
  const at::Tensor before = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool))
                                .tril(k.size(-2) - q.size(-2));
  return mask.defined() ? mask.logical_and(before) : before;
}

at::Tensor AttentionCore::for_all_heads(const at::Tensor& x) const {
  const std::int64_t times = heads_ / options_.key_heads;
  if (times == 1) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), times, x.size(2), x.size(3)})
      .reshape({x.size(0), heads_, x.size(2), x.size(3)});
}

at::Tensor AttentionCore::split(const at::Tensor& x, bool queries) const {
  const std::int64_t heads = queries ? heads_ : options_.key_heads;
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor AttentionCore::join(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

}  // namespace pipewright
