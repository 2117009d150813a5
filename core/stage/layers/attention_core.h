/// What all attention layers have in common; they differ in how q, k and v are made of what.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/stage/layers.h"

namespace pipewright {

/// Part of a layer, which names it. Without parameters; immutable but for its name.
class AttentionCore {
 public:
  AttentionCore(std::int64_t heads, AttentionOptions options);

  /// Names the random streams after the layer.
  void set_name(const std::string& layer) { dropout_->set_name(layer + ".dropout"); }

  /// dropout(softmax(q kᵀ / √d)) v: q [batch, heads, queries, d], k and v [batch, heads, keys, d].
  /// `keys`: bool [batch, keys], true where attended to; undefined: all are. A query that attends
  /// to nothing gets zeros.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& keys, const Pass& pass) const;

  /// [batch, tokens, width] to [batch, heads, tokens, width / heads] and back.
  at::Tensor split(const at::Tensor& x) const;
  static at::Tensor join(const at::Tensor& x);

 private:
  at::Tensor shares_on_meta(const at::Tensor& scores, const at::Tensor& keys) const;
  /// What may be attended to, [batch or 1, 1, queries or 1, keys]; undefined: everything.
  at::Tensor allowed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& keys) const;

  std::int64_t heads_;
  bool drops_, causal_;
  LayerPtr dropout_;
};

}  // namespace pipewright
