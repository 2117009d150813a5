// SPDX-License-Identifier: Apache-2.0
/// PowerSGD (Vogels et al., 2019): instead of a weight's gradient M [a, b], replicas exchange two
/// thin factors. For one weight, on one replica:
///
///   v = M + e;  P = v·Q          — P is averaged over the replicas
///   P orthonormal;  Q = vᵀ·P     — Q is averaged
///   M' = P·Qᵀ;  e = v − M'       — M' is the gradient; Q is where the next one starts
///
/// A gradient of more than two dimensions is taken as [first, rest]. PowerSGD is not a codec,
/// because edges between stages carry no weight gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "core/codecs/codec.h"

namespace pipewright {

/// Sizes of the factors P [rows, rank] and Q [columns, rank] of one weight.
struct FactorSizes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t rank = 0;  ///< 0: factors would not be smaller
};
FactorSizes factor_sizes(at::IntArrayRef weight, std::int64_t rank);

class PowerSgd {
 public:
  /// `sizes` are the weight's. All replicas start from the same random Q, drawn from `seed` and the
  /// weight's name.
  PowerSgd(at::IntArrayRef sizes, std::int64_t rank, std::uint64_t seed, std::string_view weight);

  /// Whether the gradient is compressed; false if its factors would not be smaller.
  bool compresses() const { return factors_.rank > 0; }
  at::IntArrayRef sizes() const { return sizes_; }
  /// Bytes of both factors together, in float32.
  std::int64_t bytes() const { return 4 * factors_.rank * (factors_.rows + factors_.columns); }

  /// First of three calls in each step. Takes the gradient, with the weight's sizes, and returns P
  /// [a, r].
  at::Tensor left(const at::Tensor& gradient);
  /// Second call. Takes the averaged P [a, r] and returns Q [b, r].
  at::Tensor right(const at::Tensor& mean_left);
  /// Third call. Takes the averaged Q [b, r] and returns M', with the weight's sizes.
  at::Tensor approximation(const at::Tensor& mean_right);

  /// The error e and Q.
  NamedTensors state() const;
  /// Throws Error{Data} if the tensors do not fit.
  void restore(const NamedTensors& state);

 private:
  std::vector<std::int64_t> sizes_;
  FactorSizes factors_;
  at::Tensor error_, q_;  ///< [a, b] or undefined, [b, r]
  at::Tensor v_, p_;      ///< within a step
};

}  // namespace pipewright
