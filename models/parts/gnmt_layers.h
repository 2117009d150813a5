/// What GNMT has besides the usual layers: the two ends of its encoder's and decoder's boundaries.
#pragma once

#include "core/stage/layer.h"

namespace pipewright {

/// {source [n, S], target [n, T]} to {embedded source [n, S, width], lengths [n], target}. A length
/// is how many tokens are not padding (0), which comes last; the padding's row starts at 0 and
/// learns nothing.
LayerPtr source_embedding(std::int64_t vocabulary, std::int64_t width);
/// {memory [n, S, ·], lengths [n], target [n, T]} to {embedded target [n, T, width], memory,
/// lengths}.
LayerPtr target_embedding(std::int64_t vocabulary, std::int64_t width);

struct ContextLstmOptions {
  double dropout = 0;          ///< of x
  bool residual = false;       ///< adds x, not dropped, to the output
  bool drops_context = false;  ///< nobody reads it any more
};
/// {x [n, T, width], context [n, T, width]} to {LSTM(dropout(x), context), context}. Is
/// Incremental.
LayerPtr context_lstm(std::int64_t width, ContextLstmOptions options);

}  // namespace pipewright
