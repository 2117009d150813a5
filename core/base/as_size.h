// SPDX-License-Identifier: Apache-2.0
/// Stages, workers and mini-batches are counted in int, values of tensors in std::int64_t;
/// containers in std::size_t. Quotients of counts that may be negative.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pipewright {

/// A count or index as std::size_t. Requires i ≥ 0.
constexpr std::size_t as_size(int i) {
  return static_cast<std::size_t>(i);
}
constexpr std::size_t as_size(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// a / b, rounded towards −∞. Requires b > 0.
constexpr int floor_quotient(int a, int b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

}  // namespace pipewright
