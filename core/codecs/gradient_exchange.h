// SPDX-License-Identifier: Apache-2.0
/// Gradient compression between the replicas of a stage: instead of the gradients they sum
/// PowerSGD's factors (Vogels et al., 2019), in two rounds. Without compression there is one round,
/// which sums the gradients.
///
///   gradients → P of every weight that is compressed, the others' gradients   — summed
///             → Q of those weights                                            — summed
///             → gradients: each weight's approximation, the others' sums
///
/// The gradient g_r of replica r is weighted by its share of the mini-batch, so Σ g_r is the mean.
/// PowerSGD averages over R replicas, so it receives R·g_r and sums of factors are divided by R.
/// The errors e_r = v_r − M' then have the scale of the mean: with v_r = R·g_r + e_r, the mean of
/// the v_r is Σ g_r + mean e_r, and what M' misses stays in the mean of the new errors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/codecs/powersgd.h"
#include "core/stage/stage.h"

namespace pipewright {

struct GradientCompression {
  std::int64_t rank = 0;  ///< rank of PowerSGD's factors; 0: no compression
};

/// The compression state of one stage replica, used by one thread at a time.
class GradientExchange {
 public:
  static constexpr int kRounds = 2;

  /// `parameters` are the stage's, in the order of its gradients. All replicas pass the same seed.
  GradientExchange(const NamedShapes& parameters, int replicas, GradientCompression compression,
                   std::uint64_t seed);

  /// Called in each step with `round` = 0, 1 and 2 = kRounds. On entry `tensors` holds the
  /// replica's gradients (round 0) or the sums over the replicas; on return, what is to be summed
  /// next or, in the last call, the gradients. Factors are computed in float32 and summed in the
  /// gradients' type. An undefined gradient counts as zeros, and stays undefined if no replica has
  /// one.
  void advance(int round, std::vector<at::Tensor>& tensors);

  /// The errors and the initial factors Q of the next step, by parameter.
  NamedTensors state() const;
  /// Restores the state of the same parameters. Throws Error{Data} if it does not fit.
  void restore(const NamedTensors& state);

 private:
  struct Weight {
    std::string name;
    PowerSgd factors;
    bool begun = false;  ///< left() has run: this replica has a gradient
    at::Tensor sum;      ///< gradient sum of an uncompressed weight, while Q is summed
  };
  at::Tensor mean(const at::Tensor& sum) const;
  void to_left(Weight& weight, at::Tensor& tensor) const;
  void to_right(Weight& weight, at::Tensor& tensor) const;
  void to_gradient(Weight& weight, at::Tensor& tensor) const;

  std::vector<Weight> weights_;
  int replicas_;
};

/// Number of rounds in which a stage's gradients are summed; `exchange` may be null.
inline int rounds_of(const GradientExchange* exchange) {
  return exchange == nullptr ? 1 : GradientExchange::kRounds;
}
inline void advance(GradientExchange* exchange, int round, std::vector<at::Tensor>& tensors) {
  if (exchange != nullptr) exchange->advance(round, tensors);
}

/// Bytes that one replica contributes to the sums if all its parameters have gradients, computed
/// from their shapes.
struct ExchangedBytes {
  std::array<std::int64_t, GradientExchange::kRounds> sums{};
  std::int64_t compressed = 0;  ///< bytes of the gradients that factors replace; 0: one sum only
};
ExchangedBytes exchanged_bytes(const NamedShapes& parameters, GradientCompression compression,
                               std::int64_t bytes_per_value);

/// Bytes of all tensors together; an undefined tensor counts as 0.
std::size_t bytes_of(std::span<const at::Tensor> tensors);

}  // namespace pipewright
