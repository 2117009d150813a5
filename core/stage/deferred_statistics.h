/// Batch-norm's running statistics of whole mini-batches: micro-batches are normalised with their
/// own, but the running ones move once, by what all of them together have (torchgpipe's deferred
/// batch normalisation).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <tuple>

namespace pipewright {

struct Pass;

enum class RunningStatistics : std::uint8_t {
  PerMicrobatch,  ///< each micro-batch moves them
  Deferred,       ///< each mini-batch, by its unbiased variance, as PyTorch does without pipeline
  DeferredBiased  ///< each mini-batch, by its biased variance, as torchgpipe does
};

/// What the mini-batches under way have gathered, of all layers of one stage replica. None is under
/// way where a pipeline is empty, so there is nothing to save.
class DeferredStatistics {
 public:
  explicit DeferredStatistics(bool biased) : biased_(biased) {}

  /// Of one micro-batch: `mean` and unbiased `variance` of `count` values per channel. The last of
  /// the pass's mini-batch to come moves `running`, mean and variance, by `momentum`.
  void add(const Pass& pass, std::span<at::Tensor> running, double momentum, std::int64_t count,
           const at::Tensor& mean, const at::Tensor& variance);

 private:
  /// Merged pair by pair in float64 (Chan, Golub and LeVeque, 1979): nothing cancels, however far
  /// the mean is from 0.
  struct Gathered {
    int microbatches = 0;
    double count = 0;
    at::Tensor mean, squares;  ///< squares: of the deviations from the mean, summed
  };
  using Key = std::tuple<const void*, int, int>;  ///< running mean, epoch, mini-batch

  bool biased_;
  std::map<Key, Gathered> gathered_;
};

}  // namespace pipewright
