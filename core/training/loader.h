// SPDX-License-Identifier: Apache-2.0
/// Mini-batches of a data set for an execution. Their order is a function of the seed and the
/// epoch, so every execution sees the same data.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/nn/dataset.h"
#include "core/runtime/batches.h"

namespace pipewright {

/// The samples of one split in the order of one epoch, cut into mini-batches.
struct EpochOrder {
  std::vector<std::int64_t> indices;
  std::int64_t batch_size = 1;
  bool drop_last = true;

  int minibatches() const;
  std::int64_t size_of(int minibatch) const;  ///< in samples; only the last may be smaller
};

/// Shuffles by Fisher–Yates with the random stream (seed, "shuffle", epoch). Without `shuffle`
/// returns the indices unchanged.
std::vector<std::int64_t> epoch_permutation(std::vector<std::int64_t> indices, bool shuffle,
                                            std::uint64_t seed, int epoch);

/// Groups samples of similar length, so that padding is short: sorts the samples of every `shard`
/// consecutive mini-batches by length (`lengths` is indexed by sample), longest first, then
/// shuffles whole mini-batches with the random stream (seed, "bucket", epoch). A smaller last
/// mini-batch stays the last.
std::vector<std::int64_t> bucketed(std::vector<std::int64_t> order,
                                   const std::vector<std::int64_t>& lengths,
                                   std::int64_t batch_size, std::int64_t shard, std::uint64_t seed,
                                   int epoch);

/// The mini-batches of consecutive epochs, assembled on first use or ahead of it by prefetch
/// threads. The latest few are cached for later stages. Thread-safe.
class Loader final : public Batches {
 public:
  struct Settings {
    const Dataset* dataset = nullptr;
    Split split = Split::Train;
    at::ScalarType precision = at::kFloat;
    bool channels_last = false;  ///< images are in channels-last memory
    bool augment = false;
    std::uint64_t seed = 1;
    int first_epoch = 0;
    int first_minibatch = 0;  ///< first mini-batch to give of the first epoch
    int replicas = 1, microbatches = 1;
    int slices = 1;  ///< of a micro-batch's sequences; each has the number of a micro-batch
    MicrobatchSizes microbatch_sizes = MicrobatchSizes::Even;
    int keep = 8;      ///< mini-batches in the cache
    int prefetch = 0;  ///< number of prefetch threads and of mini-batches that they are ahead
    int threads = 1;   ///< intra-op threads of each prefetch thread; must be that of the workers,
                       ///< because LibTorch keeps part of this setting per process
    /// Shape that the model wants of a sample other than tokens; empty: the shape in the data set.
    std::vector<std::int64_t> input_shape;
  };
  /// Makes the order of an epoch, counted from the first that is given. Any thread may call it.
  using OrderMaker = std::function<EpochOrder(int epoch)>;
  /// Of so many epochs, whose orders have the same number of samples and mini-batches. An order is
  /// made when a sample of its epoch is needed; the latest few are kept.
  Loader(Settings settings, int epochs, OrderMaker order);
  /// Of epochs whose orders are there.
  Loader(Settings settings, std::vector<EpochOrder> epochs);

  int minibatches() const { return per_epoch_ * epochs_ - settings_.first_minibatch; }
  int per_epoch() const { return per_epoch_; }

  Share share(int minibatch, int replica, int microbatch) const override;
  Tensors inputs(int minibatch, const Share& share, at::Device device) override;
  at::Tensor targets(int minibatch, const Share& share, at::Device device) override;
  Samples samples(int minibatch, const Share& share) const override;

 private:
  /// `position` counts from the beginning of the first epoch.
  Batch whole(int position);
  Batch assembled(int position) const;
  void assemble(int position, std::promise<Batch> promise) const;
  std::optional<std::shared_future<Batch>> find(int position) const PIPEWRIGHT_REQUIRES(mutex_);
  std::promise<Batch> begin(int position) PIPEWRIGHT_REQUIRES(mutex_);
  void go_ahead_of(int position) PIPEWRIGHT_REQUIRES(mutex_);
  void prefetch(const std::stop_token& stop) PIPEWRIGHT_EXCLUDES(mutex_);
  int position_of(int minibatch) const { return settings_.first_minibatch + minibatch; }

  using Order = std::shared_ptr<const EpochOrder>;
  Order order_of(int epoch) const PIPEWRIGHT_EXCLUDES(orders_mutex_);
  std::int64_t size_of(int position) const;

  Settings settings_;
  int epochs_;
  OrderMaker make_order_;
  mutable Mutex orders_mutex_;
  /// The orders of the latest few epochs: an epoch's last mini-batches are in the pipeline with the
  /// first ones of the next.
  mutable std::map<int, Order> orders_ PIPEWRIGHT_GUARDED_BY(orders_mutex_);
  std::vector<std::int64_t> sizes_;  ///< of the first mini-batch of an epoch and of the last
  int per_epoch_ = 0;
  Mutex mutex_;
  std::condition_variable_any wanted_more_;
  std::list<std::pair<int, std::shared_future<Batch>>> recent_
      PIPEWRIGHT_GUARDED_BY(mutex_);  ///< cache; a future may be pending
  // positions to prefetch: [next_, wanted_)
  int next_ PIPEWRIGHT_GUARDED_BY(mutex_) = 0;
  int wanted_ PIPEWRIGHT_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_;  ///< last member: threads use the others
};

}  // namespace pipewright
