/// Tensors as matrices [a, b] that cross an edge as two factors of rank r: what `svd` and
/// `power_iteration` share. A tensor without matrices, or whose factors would be no smaller, goes
/// as it is.
///
/// Payload: the left factors of all matrices, [count, a, r], then as many right ones of b·r values;
/// or the values; float32.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

struct LowRank {
  /// The last two dimensions are a matrix.
  static LowRank of_last_dimensions(at::IntArrayRef sizes, std::int64_t most_rank);
  /// A sample is one: dimension 1, and all that follow it.
  static LowRank of_samples(at::IntArrayRef sizes, std::int64_t most_rank);

  bool as_it_is() const { return rank == 0; }
  std::int64_t bytes() const;

  /// Views of a payload of bytes(): [values]; [count, a, r]; [count · b · r].
  at::Tensor values_of(const at::Tensor& payload) const;
  at::Tensor left_of(const at::Tensor& payload) const;
  at::Tensor right_of(const at::Tensor& payload) const;

  std::int64_t values = 0;
  std::int64_t count = 0, a = 0, b = 0;
  std::int64_t rank = 0;  ///< 0: as it is

 private:
  /// `most`, or what the matrices have, if that makes them smaller.
  void choose_rank(std::int64_t most);
};

}  // namespace pipewright
