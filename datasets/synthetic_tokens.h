// SPDX-License-Identifier: Apache-2.0
/// Synthetic texts that can be learnt, for each task of models of texts. Tokens 0 to 3 are reserved
/// for padding and marks; the others are drawn uniformly unless stated otherwise.
///
///   Classify   class = argmax over c of Σ over the tokens of S[token, c], S normal(0, 1)
///   Continue   each token follows from the one before by a fixed permutation, but for one in eight
///   Translate  the target is the source, each token by a fixed permutation, then the end mark (3);
///              the target so far begins with the start mark (2)
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/nn/task.h"

namespace pipewright {

struct TokenSamples {
  std::int64_t tokens = 0;           ///< tokens per sample
  std::int64_t targets = 1;          ///< targets per sample
  std::vector<std::int64_t> x;       ///< [n, tokens]
  std::vector<std::int64_t> so_far;  ///< Translate: [n, tokens]
  std::vector<std::int64_t> y;       ///< [n, targets]
};

struct TokenRequest {
  Task task = Task::Classify;
  std::uint64_t seed = 0;
  std::uint64_t split = 0;  ///< selects other samples of the same rules
  std::int64_t count = 0, tokens = 0, vocabulary = 0, classes = 0;
};

TokenSamples synthetic_tokens(const TokenRequest& request);

}  // namespace pipewright
