/// Mini-batches of a data set for an execution: the order is a function of the seed and the epoch,
/// so every execution sees the same data.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/runtime/batches.h"
#include "core/stage/dataset.h"

namespace pipewright {

/// The samples of one split in the order of one epoch, cut into mini-batches.
struct EpochOrder {
  std::vector<std::int64_t> indices;
  std::int64_t batch_size = 1;
  bool drop_last = true;

  int minibatches() const;
  std::int64_t size_of(int minibatch) const;  ///< samples; only the last may be smaller
};

/// Fisher–Yates by the stream (seed, "shuffle", epoch); the identity without `shuffle`.
std::vector<std::int64_t> epoch_permutation(std::vector<std::int64_t> indices, bool shuffle,
                                            std::uint64_t seed, int epoch);

/// The mini-batches of consecutive epochs, assembled when first asked for; the latest few are kept
/// for those who ask later. Thread-safe.
class Loader final : public Batches {
 public:
  struct Settings {
    const Dataset* dataset = nullptr;
    Split split = Split::Train;
    at::ScalarType precision = at::kFloat;
    bool augment = false;
    std::uint64_t seed = 1;
    int first_epoch = 0;
    int first_minibatch = 0;  ///< of the first epoch: those before it are left out
    int replicas = 1, microbatches = 1;
    int keep = 8;  ///< mini-batches held at once
    /// Of one sample that is no tokens, as the model wants it; empty: as the data set has it.
    std::vector<std::int64_t> input_shape;
  };
  /// One order per epoch; all have the same number of mini-batches.
  Loader(Settings settings, std::vector<EpochOrder> epochs);

  int minibatches() const {
    return per_epoch_ * static_cast<int>(epochs_.size()) - settings_.first_minibatch;
  }
  int per_epoch() const { return per_epoch_; }

  Share share(int minibatch, int replica, int microbatch) const override;
  Tensors inputs(int minibatch, const Share& share, at::Device device) override;
  at::Tensor targets(int minibatch, const Share& share, at::Device device) override;

 private:
  /// `position` counts from the beginning of the first epoch.
  Batch whole(int position);
  int position_of(int minibatch) const { return settings_.first_minibatch + minibatch; }

  Settings settings_;
  std::vector<EpochOrder> epochs_;
  int per_epoch_;
  std::mutex mutex_;
  std::list<std::pair<int, Batch>> recent_;
};

}  // namespace pipewright
