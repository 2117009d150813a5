// SPDX-License-Identifier: Apache-2.0
/// Layers that only GNMT needs: its two embeddings and its LSTM over input and context.
#pragma once

#include "core/nn/layer.h"

namespace pipewright {

/// Maps {source [n, S], target [n, T]} to {embedded source [n, S, width], lengths [n], target}. A
/// length is the number of tokens that are not padding (0); padding comes last. The padding's
/// embedding starts at 0 and has no gradient.
LayerPtr source_embedding(std::int64_t vocabulary, std::int64_t width);
/// Maps {memory [n, S, ·], lengths [n], target [n, T]} to {embedded target [n, T, width], memory,
/// lengths}.
LayerPtr target_embedding(std::int64_t vocabulary, std::int64_t width);

struct ContextLstmOptions {
  double dropout = 0;          ///< dropout probability of x
  bool residual = false;       ///< adds x, before dropout, to the output
  bool drops_context = false;  ///< the output has no context: no later layer reads it
};
/// Maps {x [n, T, width], context [n, T, width]} to {LSTM(dropout(x), context), context}. Is
/// Incremental.
LayerPtr context_lstm(std::int64_t width, ContextLstmOptions options);

}  // namespace pipewright
