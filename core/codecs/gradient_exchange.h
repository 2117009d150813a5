/// What the replicas of a stage sum instead of its gradients: PowerSGD's factors (Vogels et al.,
/// 2019), in two rounds. Without an exchange there is one round, of the gradients as they are.
///
///   gradients → P of every weight that is compressed, the others' gradients   — summed
///             → Q of those weights                                            — summed
///             → gradients: each weight's approximation, the others' sums
///
/// A replica's gradient g_r is weighted by its share of the mini-batch, so Σ g_r is the mean.
/// PowerSGD averages: what it is given is R·g_r, and sums of factors are divided by R. Then the
/// errors e_r = v_r − M' have the scale of the mean itself: with v_r = R·g_r + e_r, the mean of the
/// v_r is Σ g_r + mean e_r, and what is not in M' stays in the mean of the new errors.
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
  std::int64_t rank = 0;  ///< of PowerSGD; 0: gradients are summed as they are
};

/// Of one stage replica. Used by one thread at a time.
class GradientExchange {
 public:
  static constexpr int kRounds = 2;

  /// parameters: of the stage, in the order of its gradients. The seed is the same in all replicas.
  GradientExchange(const NamedShapes& parameters, int replicas, GradientCompression compression,
                   std::uint64_t seed);

  /// Once a step for each `round` from 0 to kRounds. Before round 1 `tensors` are the gradients, in
  /// between what the round before has summed; they become what the next one sums, and at last the
  /// gradients. Factors are computed in float32, and summed in the gradients' type. A gradient that
  /// is undefined counts as zeros, and where no replica has one it stays so.
  void advance(int round, std::vector<at::Tensor>& tensors);

  /// Errors and the factors to start from, by parameter.
  NamedTensors state() const;
  /// Of the same parameters. Throws Error{Data} where it does not fit.
  void restore(const NamedTensors& state);

 private:
  struct Weight {
    std::string name;
    PowerSgd factors;
    bool begun = false;  ///< this replica has a gradient of it
    at::Tensor sum;      ///< of one that is not compressed, during round 2
  };
  at::Tensor mean(const at::Tensor& sum) const;
  void to_left(Weight& weight, at::Tensor& tensor) const;
  void to_right(Weight& weight, at::Tensor& tensor) const;
  void to_gradient(Weight& weight, at::Tensor& tensor) const;

  std::vector<Weight> weights_;
  int replicas_;
};

/// Of the sums of a stage's gradients; `exchange` may be null.
inline int rounds_of(const GradientExchange* exchange) {
  return exchange == nullptr ? 1 : GradientExchange::kRounds;
}
inline void advance(GradientExchange* exchange, int round, std::vector<at::Tensor>& tensors) {
  if (exchange != nullptr) exchange->advance(round, tensors);
}

/// What one replica puts into the two sums where all its parameters have gradients, by their shapes
/// alone.
struct ExchangedBytes {
  std::array<std::int64_t, GradientExchange::kRounds> sums{};
  std::int64_t compressed = 0;  ///< of the gradients that factors stand for; 0: there is one sum
};
ExchangedBytes exchanged_bytes(const NamedShapes& parameters, GradientCompression compression,
                               std::int64_t bytes_per_value);

/// Of all of them; undefined tensors have none.
std::size_t bytes_of(std::span<const at::Tensor> tensors);

}  // namespace pipewright
