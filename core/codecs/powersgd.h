/// PowerSGD (Vogels et al., 2019): what replicas exchange instead of a weight's gradient, M [a, b],
/// is two thin factors. For one weight, on one replica:
///
///   v = M + e;  P = v·Q          — P is averaged over the replicas
///   P orthonormal;  Q = vᵀ·P     — Q is averaged
///   M' = P·Qᵀ;  e = v − M'       — M' is the gradient; Q is where the next one starts
///
/// A gradient of more than two dimensions is [first, rest]. Not a codec: edges between stages
/// carry no weights' gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "core/codecs/codec.h"

namespace pipewright {

/// P [rows, rank] and Q [columns, rank] of one weight.
struct FactorSizes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t rank = 0;  ///< 0: factors would be no smaller
};
FactorSizes factor_sizes(at::IntArrayRef weight, std::int64_t rank);

class PowerSgd {
 public:
  /// sizes: of the weight. All replicas start from the same random Q: of that seed and weight.
  PowerSgd(at::IntArrayRef sizes, std::int64_t rank, std::uint64_t seed, std::string_view weight);

  /// False: the gradient is to be averaged as it is, for its factors would be no smaller.
  bool compresses() const { return factors_.rank > 0; }
  at::IntArrayRef sizes() const { return sizes_; }
  /// Of the two averages together.
  std::int64_t bytes() const { return 4 * factors_.rank * (factors_.rows + factors_.columns); }

  /// In this order, once a step. gradient: of the weight's sizes, float32 → P [a, r].
  at::Tensor left(const at::Tensor& gradient);
  /// mean_left: [a, r] → Q [b, r].
  at::Tensor right(const at::Tensor& mean_left);
  /// mean_right: [b, r] → M', of the weight's sizes.
  at::Tensor approximation(const at::Tensor& mean_right);

  /// The error and Q.
  NamedTensors state() const;
  /// Throws Error{Data} where tensors do not fit.
  void restore(const NamedTensors& state);

 private:
  std::vector<std::int64_t> sizes_;
  FactorSizes factors_;
  at::Tensor error_, q_;  ///< [a, b] or undefined, [b, r]
  at::Tensor v_, p_;      ///< within a step
};

}  // namespace pipewright
