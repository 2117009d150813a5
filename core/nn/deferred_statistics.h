// SPDX-License-Identifier: Apache-2.0
/// Deferred batch normalisation (torchgpipe): each micro-batch is normalised with its own
/// statistics, but the running statistics are updated once per mini-batch, with the statistics of
/// all its micro-batches together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <tuple>

namespace pipewright {

struct Pass;

enum class RunningStatistics : std::uint8_t {
  PerMicrobatch,  ///< updated by each micro-batch
  PerPass,        ///< updated by each micro-batch, and again when it is recomputed: a defect of
                  ///< torchgpipe
  Deferred,  ///< updated once per mini-batch with its unbiased variance, as PyTorch does without a
             ///< pipeline
  DeferredBiased  ///< updated once per mini-batch with its biased variance, as in torchgpipe
};

/// Statistics gathered so far from the mini-batches in flight, for all batch-norm layers of one
/// stage replica. A checkpoint need not hold them: no mini-batch is in flight when the pipeline is
/// drained.
class DeferredStatistics {
 public:
  explicit DeferredStatistics(bool biased) : biased_(biased) {}

  /// Merges one micro-batch: `mean` and unbiased `variance` of `count` values per channel. The call
  /// that completes the mini-batch updates `running` = {mean, variance} with `momentum`.
  void add(const Pass& pass, std::span<at::Tensor> running, double momentum, std::int64_t count,
           const at::Tensor& mean, const at::Tensor& variance);

 private:
  /// Pairwise merged sums in float64 (Chan, Golub and LeVeque, 1979): no cancellation, however far
  /// the mean is from 0.
  struct Gathered {
    int microbatches = 0;
    double count = 0;
    at::Tensor mean, squares;  ///< squares: sum of squared deviations from the mean
  };
  using Key = std::tuple<const void*, int, int>;  ///< running mean, epoch, mini-batch

  bool biased_;
  std::map<Key, Gathered> gathered_;
};

}  // namespace pipewright
