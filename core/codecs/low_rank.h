// SPDX-License-Identifier: Apache-2.0
/// Low-rank payloads, shared by `svd` and `power_iteration`: a tensor is seen as matrices [a, b]
/// that cross an edge as two factors of rank r. A tensor that has no matrices, or whose factors
/// would not be smaller, crosses uncompressed.
///
/// Payload, float32: the left factors of all matrices, [count, a, r], then as many right factors of
/// b·r values each; or the uncompressed values.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

struct LowRank {
  /// Takes the last two dimensions as matrices.
  static LowRank of_last_dimensions(at::IntArrayRef sizes, std::int64_t most_rank);
  /// Takes each sample as a matrix: dimension 1, and all later dimensions together.
  static LowRank of_samples(at::IntArrayRef sizes, std::int64_t most_rank);

  bool as_it_is() const { return rank == 0; }
  std::int64_t bytes() const;

  /// Views of a payload of bytes(): [values]; [count, a, r]; [count · b · r].
  at::Tensor values_of(const at::Tensor& payload) const;
  at::Tensor left_of(const at::Tensor& payload) const;
  at::Tensor right_of(const at::Tensor& payload) const;

  std::int64_t values = 0;
  std::int64_t count = 0, a = 0, b = 0;
  std::int64_t rank = 0;  ///< 0: uncompressed

 private:
  /// Sets rank to min(most, a, b), or to 0 if the factors would not be smaller.
  void choose_rank(std::int64_t most);
};

}  // namespace pipewright
