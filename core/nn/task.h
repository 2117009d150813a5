// SPDX-License-Identifier: Apache-2.0
/// Tasks: the meaning of samples and targets, on which models, data sets, losses and metrics agree.
#pragma once

#include <cstdint>

namespace pipewright {

enum class Task : std::uint8_t {
  Classify,   ///< x [n, …] → outputs [n, classes], targets [n]
  Continue,   ///< x [n, T] tokens → outputs [n, T, classes], targets [n, T]: the next tokens
  Translate,  ///< x {source [n, S], target prefix [n, T]} tokens → outputs and targets as in
              ///< Continue
  Regress,  ///< x [n, …] → outputs [n, k], targets [n, k]: real numbers. Of data sets and losses;
            ///< models are those of Classify
  Label,  ///< x [n, …] → logits [n, …], targets of the same shape: each label holds, 1, or not, 0.
          ///< As Regress of data sets and losses
  Minimize,  ///< x [n, …] → outputs [n, 1]: each is the loss of its sample; without targets
};

/// A target that losses and metrics ignore: PyTorch's ignore_index.
constexpr std::int64_t kNoTarget = -100;

/// Special tokens of translated texts. Tokens from kMarkTokens on are words.
constexpr std::int64_t kPaddingToken = 0, kUnknownToken = 1, kStartToken = 2, kEndToken = 3,
                       kMarkTokens = 4;

}  // namespace pipewright
