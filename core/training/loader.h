/// Mini-batches of a data set for an execution: the order is a function of the seed and the epoch,
/// so every execution sees the same data.
#pragma once

#include <condition_variable>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
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

/// The order with samples of like length together, so that padding is short: in every run of
/// `shard` mini-batches samples are sorted by length (by sample), longest first, and then whole
/// mini-batches change places by the stream (seed, "bucket", epoch). A smaller last mini-batch
/// stays the last.
std::vector<std::int64_t> bucketed(std::vector<std::int64_t> order,
                                   const std::vector<std::int64_t>& lengths,
                                   std::int64_t batch_size, std::int64_t shard, std::uint64_t seed,
                                   int epoch);

/// The mini-batches of consecutive epochs, assembled when first asked for, or before that by
/// threads that go ahead in the same order; the latest few are kept for those who ask later.
/// Thread-safe.
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
    int keep = 8;      ///< mini-batches held at once for those who ask later
    int prefetch = 0;  ///< threads, and mini-batches they are ahead
    int threads = 1;  ///< intra-op, of each of them: what the workers have, for LibTorch's count of
                      ///< them is in part the whole process's
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
  std::span<const std::int64_t> samples(int minibatch, const Share& share) const override;

 private:
  /// `position` counts from the beginning of the first epoch.
  Batch whole(int position);
  Batch assembled(int position) const;
  void assemble(int position, std::promise<Batch> promise) const;
  // With the lock held:
  std::optional<std::shared_future<Batch>> find(int position) const;
  std::promise<Batch> begin(int position);
  void go_ahead_of(int position);
  void prefetch(const std::stop_token& stop);
  int position_of(int minibatch) const { return settings_.first_minibatch + minibatch; }

  Settings settings_;
  std::vector<EpochOrder> epochs_;
  int per_epoch_;
  std::mutex mutex_;
  std::condition_variable_any wanted_more_;
  std::list<std::pair<int, std::shared_future<Batch>>> recent_;  ///< finished or under way
  int next_ = 0, wanted_ = 0;          ///< to be assembled ahead: [next_, wanted_)
  std::vector<std::jthread> threads_;  ///< last: they use what is above
};

}  // namespace pipewright
