/// What samples and targets are, on which models, data sets, losses and metrics must agree.
#pragma once

#include <cstdint>

namespace pipewright {

enum class Task : std::uint8_t {
  Classify,   ///< x [n, …] → outputs [n, classes], targets [n]
  Continue,   ///< x [n, T] tokens → outputs [n, T, classes], targets [n, T]: the next tokens
  Translate,  ///< x {source [n, S], target so far [n, T]} tokens → outputs and targets as Continue
};

/// A target that counts for no loss and no metric: PyTorch's ignore_index.
constexpr std::int64_t kNoTarget = -100;

/// Of texts that are translated.
constexpr std::int64_t kPaddingToken = 0, kUnknownToken = 1, kStartToken = 2, kEndToken = 3;

}  // namespace pipewright
