// SPDX-License-Identifier: Apache-2.0
/// The part that all attention layers share; they differ in how they compute q, k and v.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/nn/layers.h"
#include "core/nn/layers/rotary.h"

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

  /// dropout(softmax(scale q kᵀ)) v for q [batch, heads, queries, d], k and v [batch, key heads,
  /// keys, d], with q and k normalised and rotated before where the options say so. `keys` is bool
  /// [batch, keys], true where a key may be attended to; undefined: all may. A query that may
  /// attend to no key gets zeros. In a pass with slices, k and v are those of this slice, and its
  /// queries also attend to the keys of the slices before it.
  at::Tensor attend(const at::Tensor& queries, const at::Tensor& own_keys, const at::Tensor& v,
                    const at::Tensor& keys, const Pass& pass) const;

  /// Reshapes queries [batch, tokens, width] to [batch, heads, tokens, d], keys and values to
  /// [batch, key heads, tokens, d]; join() does the reverse.
  at::Tensor split(const at::Tensor& x, bool queries) const;
  static at::Tensor join(const at::Tensor& x);

 private:
  /// Keys or values, for each head of the queries.
  at::Tensor for_all_heads(const at::Tensor& x) const;
  at::Tensor attend_to_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& keys, const Pass& pass) const;
  /// The operators that make the mask, if it has one.
  int operators_of_mask(const at::Tensor& keys) const;
  at::Tensor shares_on_meta(const at::Tensor& scores, const at::Tensor& keys) const;
  /// Mask of the keys that may be attended to, bool [batch or 1, 1, queries or 1, keys]; undefined:
  /// all may.
  at::Tensor allowed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& keys) const;

  std::string name_;
  std::int64_t heads_;
  AttentionOptions options_;
  LayerPtr dropout_;
  RotaryTables tables_;  ///< of no use without options_.rotary
};

}  // namespace pipewright
