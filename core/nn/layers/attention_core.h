// SPDX-License-Identifier: Apache-2.0
/// The part that all attention layers share; they differ in how they compute q, k and v.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/nn/layers.h"

namespace pipewright {

/// Scaled dot-product attention as a part of a layer. It has no parameters and is immutable except
/// for its name, which the layer sets.
class AttentionCore {
 public:
  AttentionCore(std::int64_t heads, AttentionOptions options);

  /// Names the dropout's random streams after the layer.
  void set_name(const std::string& layer) {
    name_ = layer;
    dropout_->set_name(layer + ".dropout");
  }

  /// dropout(softmax(q kᵀ / √d)) v for q [batch, heads, queries, d], k and v [batch, heads, keys,
  /// d]. `keys` is bool [batch, keys], true where a key may be attended to; undefined: all may. A
  /// query that may attend to no key gets zeros. In a pass with slices, k and v are those of this
  /// slice, and its queries also attend to the keys of the slices before it.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& keys, const Pass& pass) const;

  /// Reshapes [batch, tokens, width] to [batch, heads, tokens, width / heads]; join() does the
  /// reverse.
  at::Tensor split(const at::Tensor& x) const;
  static at::Tensor join(const at::Tensor& x);

 private:
  at::Tensor attend_to_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& keys, const Pass& pass) const;
  at::Tensor shares_on_meta(const at::Tensor& scores, const at::Tensor& keys) const;
  /// Mask of the keys that may be attended to, bool [batch or 1, 1, queries or 1, keys]; undefined:
  /// all may.
  at::Tensor allowed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& keys) const;

  std::string name_;
  std::int64_t heads_;
  bool drops_, causal_;
  LayerPtr dropout_;
};

}  // namespace pipewright
